package api

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

const codesPage = "../../docs/reference/errors.md"

// TestCodesArePublished compares the reference page with the table. To write the page's tables anew, copy what the test
// prints.
func TestCodesArePublished(t *testing.T) {
	page, err := os.ReadFile(codesPage)
	if err != nil {
		t.Fatal(err)
	}
	for name, codes := range map[string][]Code{"events": eventCodes(), "requests": requestCodes()} {
		want := codeTable(codes)
		begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->\n"
		_, rest, found := strings.Cut(string(page), begin)
		got, _, closed := strings.Cut(rest, end)
		if !found || !closed || got != want {
			t.Errorf("%s: the table of %s between %q and %q is not that of the code; want\n%s", codesPage, name, begin, end, want)
		}
	}
}

func codeTable(codes []Code) string {
	var b strings.Builder
	b.WriteString("| Code | Status | What happened | What to do |\n|---|---|---|---|\n")
	for _, c := range codes {
		fmt.Fprintf(&b, "| `%s` | %d | %s | %s |\n", c.Code, c.Status, c.Meaning, c.Cure)
	}
	return b.String()
}

// TestCodesAreComplete finds every code constant of this package and of cloudevents in the table, once.
func TestCodesAreComplete(t *testing.T) {
	listed := map[string]int{}
	for _, c := range Codes() {
		listed[c.Code]++
	}
	declared := declaredCodes(t, "errors.go", "code")
	for code := range declaredCodes(t, "../cloudevents/reject.go", "Code") {
		declared[code] = true
	}
	if len(declared) < 30 {
		t.Fatalf("found %d declared codes; the test looks in the wrong place", len(declared))
	}
	for code := range declared {
		if listed[code] != 1 {
			t.Errorf("code %s stands %d times in the table; want once", code, listed[code])
		}
		delete(listed, code)
	}
	for code := range listed {
		t.Errorf("code %s of the table is declared nowhere", code)
	}
}

// declaredCodes returns the values of a file's constants whose names begin with prefix.
func declaredCodes(t *testing.T, file, prefix string) map[string]bool {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]bool{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, prefix) {
			return true
		}
		if value, ok := spec.Values[0].(*ast.BasicLit); ok && value.Kind == token.STRING {
			code, err := strconv.Unquote(value.Value)
			if err != nil {
				t.Fatal(err)
			}
			codes[code] = true
		}
		return true
	})
	return codes
}
