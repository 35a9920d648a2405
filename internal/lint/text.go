package lint

import (
	"bytes"
	"fmt"
	"go/format"
	"path"
	"regexp"
	"strings"
)

// Compiled at each use: a check runs once a test. The words are in pieces so that the rule does not find itself.
func leftovers() *regexp.Regexp {
	return regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|HA` + `CK|XX` + `X)\b`)
}

func machinePaths() *regexp.Regexp {
	return regexp.MustCompile(`(^|[\s"'=:(` + "`" + `])/(ro` + `ot|wo` + `rk|ho` + `me/[a-z]+|Us` + `ers)/`)
}

// CheckText finds notes of unfinished work and paths of somebody's machine, in every text file.
func CheckText(t *Tree) []Finding {
	rules := []struct {
		pattern *regexp.Regexp
		message string
	}{
		{leftovers(), "%s: finish it, or open an issue"},
		{machinePaths(), "%s: a path of one machine: use a relative one or a variable"},
	}
	var found []Finding
	for i := range t.Files {
		f := &t.Files[i]
		if f.Path == "go.sum" || strings.Contains(f.Path, "testdata/") {
			continue
		}
		for n, line := range bytes.Split(f.Source, []byte("\n")) {
			for _, rule := range rules {
				if hit := rule.pattern.Find(line); hit != nil {
					found = append(found, Finding{f.Path, n + 1, fmt.Sprintf(rule.message, strings.TrimSpace(string(hit)))})
				}
			}
		}
	}
	return found
}

// CheckFormat finds Go files that gofmt would change.
func CheckFormat(t *Tree) []Finding {
	var found []Finding
	t.goFiles(func(f *File) {
		formatted, err := format.Source(f.Source)
		if err != nil || !bytes.Equal(formatted, f.Source) {
			found = append(found, Finding{f.Path, 0, "not formatted: run make fmt"})
		}
	})
	return found
}

// CheckLinks finds links of Markdown pages that lead nowhere, and pages under docs that no other page links to.
func CheckLinks(t *Tree) []Finding {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	exists := map[string]bool{}
	for i := range t.Files {
		exists[t.Files[i].Path] = true
	}
	for dir := range t.dirs {
		exists[dir] = true
	}
	var found []Finding
	linked := map[string]bool{}
	for i := range t.Files {
		f := &t.Files[i]
		if !strings.HasSuffix(f.Path, ".md") || strings.Contains(f.Path, "testdata/") {
			continue
		}
		for n, line := range strings.Split(string(f.Source), "\n") {
			for _, match := range link.FindAllStringSubmatch(line, -1) {
				target, _, _ := strings.Cut(match[1], "#")
				if target == "" || strings.Contains(target, ":") || strings.HasPrefix(target, "/") {
					continue // inside the page, or outside the tree
				}
				target = path.Join(path.Dir(f.Path), target)
				if !exists[target] {
					found = append(found, Finding{f.Path, n + 1, "the link " + match[1] + " leads nowhere"})
				}
				if target != f.Path {
					linked[target] = true
				}
			}
		}
	}
	return append(found, unlinked(t, linked)...)
}

func unlinked(t *Tree, linked map[string]bool) []Finding {
	var found []Finding
	for i := range t.Files {
		name := t.Files[i].Path
		if strings.HasPrefix(name, "docs/") && strings.HasSuffix(name, ".md") && !linked[name] {
			found = append(found, Finding{name, 0, "no page links here: link it from the page that a reader comes from"})
		}
	}
	return found
}
