// Package predicate decides whether a counter counts an event: its `where`, in the language of expr-lang/expr.
//
// Most conditions compare attributes and payload fields with constants. Those are evaluated on the bytes of the event
// where they lie: a tree of nodes, built once, that decodes nothing and allocates nothing (but for strings that were sent
// with escapes). Whatever else the language can say (arithmetic, functions, closures) runs on expr's own machine, on a
// decoded copy of the event: right, and ten times and more slower. Both give the same answers; a test holds the one against
// the other.
//
// Identifiers are attributes (type, source, an extension), data is the payload. What is missing is nil, also below
// something that is no object, so that data.a.b needs no guards. Numbers without fraction and exponent are integers if
// they fit 64 bits, every other one is a float.
//
// A counter is rebuilt from the log, so an answer may depend on the event alone: functions that look at the clock or at
// the order of a map do not exist here.
package predicate

import (
	"errors"
	"fmt"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"

	"github.com/weirstream/weir/internal/event"
)

// sourceBytesMax bounds the text of an expression, and so how deep it can nest.
const sourceBytesMax = 4096

// Predicate is a compiled where. It may be used from any number of goroutines at once.
type Predicate struct {
	source  string
	root    *node       // nil: the expression needs the machine
	program *vm.Program // of every expression
}

// Error is a mistake in an expression, and where it is.
type Error struct {
	Line, Column int // from 1; columns count characters
	Message      string
}

func (e *Error) Error() string {
	return fmt.Sprintf("cannot compile the expression: line %d, column %d: %s", e.Line, e.Column, e.Message)
}

// errNotBoolean is the failure of an expression whose value is something else than true, false or nil.
var errNotBoolean = errors.New("cannot decide: the expression gave a value that is neither true nor false")

// Compile reads an expression. One that can never give true or false is a mistake. The error is an *Error.
func Compile(src string) (*Predicate, error) {
	if src == "" || len(src) > sourceBytesMax {
		return nil, &Error{Line: 1, Column: 1, Message: fmt.Sprintf("got %d bytes; want 1 to %d", len(src), sourceBytesMax)}
	}
	names := &nameCheck{declared: map[string]bool{}}
	program, err := expr.Compile(src, options(names)...)
	if err != nil {
		return nil, located(err)
	}
	if mistake := names.mistake(); mistake != nil {
		return nil, located(mistake.Bind(file.NewSource(src)))
	}
	p := &Predicate{source: src, program: program}
	if tree, err := parser.Parse(src); err == nil { // the tree in program has been rewritten for the machine
		if root, ok := build(tree.Node); ok {
			p.root = root
		}
	}
	return p, nil
}

func located(err error) *Error {
	var at *file.Error
	if errors.As(err, &at) {
		return &Error{Line: max(at.Line, 1), Column: at.Column + 1, Message: at.Message}
	}
	return &Error{Line: 1, Column: 1, Message: err.Error()}
}

func options(names *nameCheck) []expr.Option {
	opts := []expr.Option{
		// The types that are known beforehand; every other name is whatever the event holds.
		expr.Env(map[string]any{"id": "", "type": "", "segment": "", "time": 0}),
		expr.AllowUndefinedVariables(),
		expr.AsBool(),
		expr.Optimize(false), // it would make `1 in ["a"]` an error where the plain comparison is false
		expr.Function(fieldFunction, field, new(func(any, string) any)),
		expr.Patch(names),
		expr.Patch(memberPatch{}),
	}
	for _, name := range []string{"now", "keys", "values", "toPairs"} {
		opts = append(opts, expr.DisableBuiltin(name))
	}
	return opts
}

// String returns the expression as it was written.
func (p *Predicate) String() string { return p.source }

// Clone returns a predicate for another goroutine: p itself, since a Predicate does not change.
func (p *Predicate) Clone() *Predicate { return p }

// Fast tells whether the expression is evaluated without decoding events.
func (p *Predicate) Fast() bool { return p.root != nil }

// Match tells whether the event is counted: whether the expression is true. For false and nil it is not. err says what
// went wrong, such as an order asked of a string and a number; match is false then.
func (p *Predicate) Match(e *event.Event) (match bool, err error) {
	if p.root == nil {
		return p.matchSlow(e)
	}
	v, err := p.root.eval(e)
	switch {
	case err != nil || v.kind == kindNil:
		return false, err
	case v.kind != kindBool:
		return false, errNotBoolean
	}
	return v.truth, nil
}

// matchSlow runs the machine.
func (p *Predicate) matchSlow(e *event.Event) (match bool, err error) {
	out, err := vm.Run(p.program, environment(e))
	if err != nil || out == nil {
		return false, err
	}
	match, ok := out.(bool)
	if !ok {
		return false, errNotBoolean
	}
	return match, nil
}

// nameCheck finds names that can be no attribute, so that a field without its data. is a mistake and not always nil, and
// calls of what is no function.
type nameCheck struct {
	used     []*ast.IdentifierNode // that only a let could explain
	parents  []*ast.IdentifierNode // whose fields are asked for
	declared map[string]bool       // by let
	calls    []*ast.CallNode
}

// Visit implements ast.Visitor. It sees a declaration after the uses of its name: mistake sorts them out at the end.
func (c *nameCheck) Visit(n *ast.Node) {
	switch n := (*n).(type) {
	case *ast.VariableDeclaratorNode:
		c.declared[n.Name] = true
	case *ast.IdentifierNode:
		if !attribute(n.Value) {
			c.used = append(c.used, n)
		}
	case *ast.MemberNode:
		_, named := n.Property.(*ast.StringNode)
		if parent, ok := n.Node.(*ast.IdentifierNode); ok && named && parent.Value != "data" {
			c.parents = append(c.parents, parent)
		}
	case *ast.CallNode:
		if callee, ok := n.Callee.(*ast.IdentifierNode); !ok || callee.Value != fieldFunction {
			c.calls = append(c.calls, n)
		}
	}
}

// mistake returns the first mistake found, or nil.
func (c *nameCheck) mistake() *file.Error {
	for _, n := range c.used {
		if !c.declared[n.Value] {
			return &file.Error{Location: n.Location(), Message: fmt.Sprintf(
				"got name %q; want an attribute (a-z and 0-9), or a field of the payload such as data.%s", n.Value, n.Value)}
		}
	}
	for _, n := range c.parents { // an attribute holds no fields, so the whole would be nil for every event
		if !c.declared[n.Value] {
			return &file.Error{Location: n.Location(), Message: fmt.Sprintf(
				"got a field of attribute %q, which has none; want a field of the payload such as data.user", n.Value)}
		}
	}
	for _, n := range c.calls {
		return &file.Error{Location: n.Location(), Message: fmt.Sprintf("got a call of %s; want a function of the language", n.Callee)}
	}
	return nil
}

func attribute(name string) bool {
	for i := range len(name) {
		if c := name[i]; c-'a' > 'z'-'a' && c-'0' > 9 {
			return name == fieldFunction
		}
	}
	return true
}

// fieldFunction is what `.name` becomes for the machine. Nobody can write the name.
const fieldFunction = ".field"

// memberPatch makes `.name` of anything that has no such field nil.
type memberPatch struct{}

// Visit implements ast.Visitor.
func (memberPatch) Visit(n *ast.Node) {
	member, ok := (*n).(*ast.MemberNode)
	if !ok || member.Method {
		return
	}
	if _, ok := member.Property.(*ast.StringNode); ok {
		ast.Patch(n, &ast.CallNode{Callee: &ast.IdentifierNode{Value: fieldFunction}, Arguments: []ast.Node{member.Node, member.Property}})
	}
}

func field(args ...any) (any, error) {
	object, ok := args[0].(map[string]any)
	if !ok {
		return nil, nil
	}
	return object[args[1].(string)], nil
}
