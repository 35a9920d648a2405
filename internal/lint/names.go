package lint

import (
	"fmt"
	"go/ast"
	"path"
	"strings"
)

// vagueNames say nothing about what is inside, so that everything ends up inside.
func vagueNames() []string {
	return []string{"util", "utils", "common", "helper", "helpers", "type", "types", "base", "core", "manager", "misc", "shared"}
}

// foreignWords are other systems' names for things that have a name here, with ours.
func foreignWords() map[string]string {
	return map[string]string{"topology": "job", "vertex": "step", "subtask": "shard", "manager": "what it does"}
}

// CheckNames finds package names that say nothing, and types named by words that have another name here.
func CheckNames(t *Tree) []Finding {
	var found []Finding
	seen := map[string]bool{}
	t.goFiles(func(f *File) {
		base := path.Base(f.Package())
		if !seen[f.Package()] && (contains(vagueNames(), base) || contains(vagueNames(), f.AST.Name.Name)) {
			found = append(found, Finding{f.Package(), 0, "the package's name says nothing: name it after the one idea in it"})
		}
		seen[f.Package()] = true
		ast.Inspect(f.AST, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			for word, ours := range foreignWords() {
				if strings.Contains(strings.ToLower(spec.Name.Name), word) {
					found = append(found, Finding{f.Path, t.line(spec.Pos()), fmt.Sprintf("type %s: not %q: say %s", spec.Name.Name, word, ours)})
				}
			}
			return true
		})
	})
	return found
}

// CheckPackageComments finds packages without a comment that begins by saying what the package is.
func CheckPackageComments(t *Tree) []Finding {
	comments := map[string][]*File{}
	names := map[string]string{}
	t.goFiles(func(f *File) {
		if f.Test {
			return
		}
		names[f.Package()] = f.AST.Name.Name
		if f.AST.Doc != nil {
			comments[f.Package()] = append(comments[f.Package()], f)
		}
	})
	var found []Finding
	for dir, name := range names {
		files := comments[dir]
		switch {
		case len(files) == 0:
			found = append(found, Finding{dir, 0, "the package has no comment: say its one idea, beginning with \"Package " + name + "\""})
		case len(files) > 1:
			found = append(found, Finding{files[1].Path, 0, "a second package comment: keep the one in " + files[0].Path})
		default:
			if message := judgeComment(name, files[0].AST.Doc.Text()); message != "" {
				found = append(found, Finding{files[0].Path, 0, message})
			}
		}
	}
	return found
}

func judgeComment(name, text string) string {
	want := "Package " + name + " "
	if name == "main" {
		want = "Command "
	}
	if !strings.HasPrefix(text, want) {
		return fmt.Sprintf("the package comment begins with %q: begin with %q", firstWords(text), want)
	}
	paragraph, _, _ := strings.Cut(text, "\n\n")
	if !strings.HasSuffix(strings.TrimSpace(paragraph), ".") {
		return "the first paragraph of the package comment is no sentence: end it with a full stop"
	}
	return ""
}

func firstWords(text string) string {
	words := strings.Fields(text)
	return strings.Join(words[:min(len(words), 3)], " ")
}
