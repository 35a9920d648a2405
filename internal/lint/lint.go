// Package lint holds the rules of this source tree that a compiler does not check: which package may import which, how
// long things may be, what may not be called and what to call instead.
//
// It runs as a test, so `go test ./...` is enough to know that a change keeps the rules. A check is a function from the
// Tree to Findings and reads nothing else, so that each has a test of its own on a small bad tree: a rule that cannot
// fail is no rule. Sizes have a ratchet (testdata/ratchet.txt): the exceptions there have reasons and may only shrink.
package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"sort"
	"strings"
)

// Module is the path that the imports of this repository's own packages begin with.
const Module = "github.com/weirstream/weir"

// Finding is one place that breaks a rule.
type Finding struct {
	Path    string // slashed, from the root of the tree
	Line    int    // 0: the whole file or folder
	Message string // what is wrong and what to do instead
}

// String shows the finding as compilers do.
func (f Finding) String() string {
	if f.Line == 0 {
		return f.Path + ": " + f.Message
	}
	return fmt.Sprintf("%s:%d: %s", f.Path, f.Line, f.Message)
}

// File is one text file of the tree.
type File struct {
	Path   string
	Source []byte
	AST    *ast.File // nil unless it is Go
	Test   bool      // its name ends in _test.go
}

// Package returns the folder of the file from the root; empty for the root itself.
func (f *File) Package() string {
	if dir := path.Dir(f.Path); dir != "." {
		return dir
	}
	return ""
}

// Tree is a source tree read into memory.
type Tree struct {
	Files []File // sorted by path
	fset  *token.FileSet
	dirs  map[string]bool
}

// skipped are folders that hold no source of ours.
func skipped(dir string) bool {
	switch path.Base(dir) {
	case ".git", ".cache", "bin", "weir-data", "node_modules":
		return true
	}
	return false
}

// Load reads the files of root that are text. A Go file that does not parse is an error: nothing else can be said then.
func Load(root fs.FS) (*Tree, error) {
	t := &Tree{fset: token.NewFileSet(), dirs: map[string]bool{}}
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && skipped(name):
			return fs.SkipDir
		case entry.IsDir():
			t.dirs[name] = true
			return nil
		case !entry.Type().IsRegular():
			return nil
		}
		return t.add(root, name)
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the source tree: %w", err)
	}
	sort.Slice(t.Files, func(i, j int) bool { return t.Files[i].Path < t.Files[j].Path })
	return t, nil
}

func (t *Tree) add(root fs.FS, name string) error {
	source, err := fs.ReadFile(root, name)
	if err != nil {
		return err
	}
	if bytes.IndexByte(source, 0) >= 0 {
		return nil // a golden file of bytes, a picture
	}
	f := File{Path: name, Source: source, Test: strings.HasSuffix(name, "_test.go")}
	if strings.HasSuffix(name, ".go") && !strings.Contains(name, "testdata/") {
		f.AST, err = parser.ParseFile(t.fset, name, source, parser.ParseComments)
		if err != nil {
			return err
		}
	}
	t.Files = append(t.Files, f)
	return nil
}

// goFiles calls each for every Go file.
func (t *Tree) goFiles(each func(*File)) {
	for i := range t.Files {
		if t.Files[i].AST != nil {
			each(&t.Files[i])
		}
	}
}

func (t *Tree) line(pos token.Pos) int { return t.fset.Position(pos).Line }
