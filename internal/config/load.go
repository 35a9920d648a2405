package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Env looks up a variable of the environment, as os.LookupEnv does.
type Env func(name string) (value string, ok bool)

// Flag is a setting from the command line, which wins over environment and file.
type Flag struct {
	Name  string // as typed, such as --data
	Path  string // the setting, such as data or listen.http
	Value string
}

// Load reads the file at path, or starts from the defaults if path is empty, and lets environment and flags win. Every
// setting outside streams and counters can be set by WEIR_ and its path in capitals with _ for dots, such as
// WEIR_MEMORY or WEIR_LISTEN_HTTP; an empty variable counts as none.
//
// Warnings describe what works but is probably not meant. An error is an *Error with all mistakes, unless the file
// cannot be read.
func Load(path string, env Env, flags ...Flag) (*Config, []Mistake, error) {
	if path == "" {
		return Parse("", nil, env, flags...)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the configuration: %w", err)
	}
	defer file.Close()
	source, err := io.ReadAll(io.LimitReader(file, fileBytesMax+1))
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the configuration: %w", err)
	}
	return Parse(path, source, env, flags...)
}

// Parse is Load for a source in memory. The name stands in messages.
func Parse(name string, source []byte, env Env, flags ...Flag) (*Config, []Mistake, error) {
	r := &reader{env: env, places: map[string]place{}, anchors: map[string]ast.Node{}, cfg: baseConfig()}
	if root := r.parse(source); root != nil {
		r.root(value{node: root})
	}
	r.override(flags)
	r.cfg.finish()
	r.validate()
	if len(r.mistakes) > 0 {
		sortMistakes(r.mistakes)
		return nil, nil, &Error{File: name, Mistakes: r.mistakes}
	}
	sortMistakes(r.warnings)
	return &r.cfg, r.warnings, nil
}

// finish fills in what the file left out and orders the streams.
func (c *Config) finish() {
	if len(c.Streams) == 0 {
		c.Streams = []Stream{baseStream(defaultStreamName)}
	}
	sort.SliceStable(c.Streams, func(i, j int) bool { return c.Streams[i].Name < c.Streams[j].Name })
	c.settle()
}

// reader gathers a Config and every mistake in it. One reader reads one configuration.
type reader struct {
	env      Env
	lines    []string
	cfg      Config
	mistakes []Mistake
	warnings []Mistake
	// places remembers where each setting that was given came from, by path.
	places  map[string]place
	anchors map[string]ast.Node
}

// place is where a value was written: in the file, or (Line 0) in a flag or variable shown by excerpt.
type place struct {
	line, column int
	excerpt      string
}

// parse returns the tree of source, or nil when there is none; syntax errors end at the first.
func (r *reader) parse(source []byte) ast.Node {
	if len(source) > fileBytesMax {
		r.mistake("", place{}, fmt.Sprintf("the file is longer than %s", FormatSize(fileBytesMax)), "split what it describes over several nodes")
		return nil
	}
	if !utf8.Valid(source) {
		r.mistake("", place{}, "the file is not UTF-8 text", "save it as UTF-8")
		return nil
	}
	r.lines = strings.Split(string(source), "\n")
	tokens := lexer.Tokenize(string(source))
	if deep := tooDeep(tokens); deep != nil {
		r.mistake("", r.inFile(deep.Position.Line, deep.Position.Column), fmt.Sprintf("nested deeper than %d", nestingMax), "no setting lies that deep: remove brackets or dashes")
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		r.syntax(err)
		return nil
	}
	var root ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if root != nil {
			r.mistake("", r.placeOf(doc.Body), "a second document begins here", "keep one document in the file: remove the line --- and what follows")
			break
		}
		root = doc.Body
	}
	return root
}

// tooDeep returns the token at which a tree would become deeper than nestingMax, or nil. The parser is recursive, and
// its time grows with the square of the depth.
func tooDeep(tokens token.Tokens) *token.Token {
	open, run := 0, 0
	for _, t := range tokens {
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			open++
		case token.MappingEndType, token.SequenceEndType:
			open--
		}
		switch t.Type {
		case token.SequenceEntryType, token.MappingKeyType, token.TagType, token.AnchorType:
			run++ // each of several in a row opens a level, or may
		default:
			run = 0
		}
		if open > nestingMax || run > nestingMax {
			return t
		}
	}
	return nil
}

func (r *reader) syntax(err error) {
	at, message := place{}, err.Error()
	var withToken yaml.Error
	if errors.As(err, &withToken) {
		message = withToken.GetMessage()
		if t := withToken.GetToken(); t != nil && t.Position != nil {
			at = r.inFile(t.Position.Line, t.Position.Column)
		}
	}
	r.mistake("", at, "not YAML: "+message, "mend the syntax here or just above: indent with spaces, close brackets and quotes, quote text that holds \": \" or \" #\"")
}

func (r *reader) inFile(line, column int) place {
	if line < 1 || line > len(r.lines) {
		return place{}
	}
	return place{line: line, column: max(column, 1), excerpt: strings.TrimRight(r.lines[line-1], "\r")}
}

func (r *reader) mistake(path string, at place, message, cure string) {
	r.mistakes = append(r.mistakes, Mistake{
		Line: at.line, Column: at.column, Excerpt: at.excerpt, Path: path, Message: message, Cure: cure,
	})
}

func (r *reader) warn(path, message, cure string) {
	at := r.where(path)
	r.warnings = append(r.warnings, Mistake{
		Line: at.line, Column: at.column, Excerpt: at.excerpt, Path: path, Message: message, Cure: cure,
	})
}

// where returns the place of the setting at path, or of the nearest section around it that was written.
func (r *reader) where(path string) place {
	for path != "" {
		if at, ok := r.places[path]; ok {
			return at
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return place{}
}
