package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"sort"
	"strconv"
	"strings"
)

// What one reader can hold in mind, in lines. Functions of tests may be longer: a table is no algorithm.
const (
	fileLinesMax     = 600
	functionLinesMax = 70
)

// Ratchet holds the exceptions to sizes, by "path" for files and "path Function" for functions.
type Ratchet map[string]exception

type exception struct {
	lines  int
	reason string
	at     int // its own line
}

// RatchetPath is where the repository keeps its exceptions.
const RatchetPath = "internal/lint/testdata/ratchet.txt"

// ParseRatchet reads lines of the form "path lines: reason" or "path Function lines: reason". Empty lines and lines
// that begin with # are comments.
func ParseRatchet(source []byte) (Ratchet, error) {
	r := Ratchet{}
	for i, line := range strings.Split(string(source), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		head, reason, _ := strings.Cut(line, ":")
		words := strings.Fields(head)
		reason = strings.TrimSpace(reason)
		if len(words) < 2 || len(words) > 3 || reason == "" {
			return nil, fmt.Errorf("cannot read the ratchet: line %d: got %q; want \"path [Function] lines: reason\"", i+1, line)
		}
		n, err := strconv.Atoi(words[len(words)-1])
		if err != nil {
			return nil, fmt.Errorf("cannot read the ratchet: line %d: %w", i+1, err)
		}
		r[strings.Join(words[:len(words)-1], " ")] = exception{n, reason, i + 1}
	}
	return r, nil
}

// CheckSizes finds files and functions that are too long, and exceptions that are not needed to their full length: they
// must be lowered, so that what once became shorter stays so.
func CheckSizes(t *Tree, r Ratchet) []Finding {
	var found []Finding
	used := map[string]int{}
	judge := func(key, path string, line, lines, limit int, what string) {
		if lines <= limit {
			return
		}
		used[key] = lines
		if e, ok := r[key]; !ok || lines > e.lines {
			found = append(found, Finding{path, line, fmt.Sprintf("%s has %d lines, more than %d: split it where its ideas part", what, lines, max(limit, e.lines))})
		}
	}
	t.goFiles(func(f *File) {
		judge(f.Path, f.Path, 0, bytes.Count(f.Source, []byte("\n")), fileLinesMax, "the file")
		for _, decl := range f.AST.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || f.Test {
				continue
			}
			name := functionName(fn)
			judge(f.Path+" "+name, f.Path, t.line(fn.Pos()), t.line(fn.End())-t.line(fn.Pos())+1, functionLinesMax, "func "+name)
		}
	})
	return append(found, unneeded(r, used)...)
}

func unneeded(r Ratchet, used map[string]int) []Finding {
	var found []Finding
	for key, e := range r {
		switch lines, ok := used[key]; {
		case !ok:
			found = append(found, Finding{RatchetPath, e.at, fmt.Sprintf("%s needs no exception any more: remove it", key)})
		case lines < e.lines:
			found = append(found, Finding{RatchetPath, e.at, fmt.Sprintf("%s has become shorter: lower %d to %d", key, e.lines, lines)})
		}
	}
	sort.Slice(found, func(i, j int) bool { return found[i].Line < found[j].Line })
	return found
}

// functionName returns Name, or Type.Name for a method.
func functionName(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	expr := fn.Recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.IndexListExpr:
			expr = e.X
		case *ast.Ident:
			return e.Name + "." + fn.Name.Name
		default:
			return fn.Name.Name
		}
	}
}
