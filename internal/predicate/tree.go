package predicate

import (
	"bytes"
	"errors"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm/runtime"

	"github.com/weirstream/weir/internal/event"
	"github.com/weirstream/weir/internal/jsonscan"
	"github.com/weirstream/weir/internal/path"
)

type op uint8

const (
	opLiteral op = iota
	opPath
	opTime
	opAnd
	opOr
	opNot
	opEqual
	opNotEqual
	opLess
	opLessEqual
	opMore
	opMoreEqual
	opInList
	opIn
	opContains
	opStartsWith
	opEndsWith
)

// node is one operation of the fast tree.
type node struct {
	op          op
	left, right *node
	literal     value
	list        []value
	path        path.Path
}

var binaryOps = map[string]op{"&&": opAnd, "and": opAnd, "||": opOr, "or": opOr, "==": opEqual, "!=": opNotEqual, "<": opLess,
	"<=": opLessEqual, ">": opMore, ">=": opMoreEqual, "in": opIn, "contains": opContains, "startsWith": opStartsWith, "endsWith": opEndsWith}

// build turns a parsed expression into a tree. ok is false where it needs the machine.
func build(n ast.Node) (tree *node, ok bool) {
	if v, ok := literal(n); ok {
		return &node{op: opLiteral, literal: v}, true
	}
	switch n := n.(type) {
	case *ast.UnaryNode:
		if n.Operator != "!" && n.Operator != "not" {
			return nil, false
		}
		left, ok := build(n.Node)
		return &node{op: opNot, left: left}, ok
	case *ast.BinaryNode:
		return buildBinary(n)
	}
	text, ok := pathText(n)
	if !ok {
		return nil, false
	}
	if text == "time" {
		return &node{op: opTime}, true
	}
	p, err := path.Parse(text)
	return &node{op: opPath, path: p}, err == nil
}

func buildBinary(n *ast.BinaryNode) (tree *node, ok bool) {
	o, ok := binaryOps[n.Operator]
	if !ok {
		return nil, false
	}
	left, ok := build(n.Left)
	if !ok {
		return nil, false
	}
	if array, ok := n.Right.(*ast.ArrayNode); ok && o == opIn {
		tree = &node{op: opInList, left: left}
		for _, element := range array.Nodes {
			v, ok := literal(element)
			if !ok {
				return nil, false
			}
			tree.list = append(tree.list, v)
		}
		return tree, true
	}
	right, ok := build(n.Right)
	return &node{op: o, left: left, right: right}, ok
}

func literal(n ast.Node) (v value, ok bool) {
	switch n := n.(type) {
	case *ast.NilNode:
		return value{}, true
	case *ast.BoolNode:
		return value{kind: kindBool, truth: n.Value}, true
	case *ast.IntegerNode:
		return value{kind: kindInteger, integer: int64(n.Value)}, true
	case *ast.FloatNode:
		return value{kind: kindFloat, float: n.Value}, true
	case *ast.StringNode:
		return value{kind: kindString, bytes: []byte(n.Value)}, true
	case *ast.UnaryNode:
		if v, ok = literal(n.Node); !ok || n.Operator != "-" {
			return value{}, false
		}
		v.integer, v.float = -v.integer, -v.float
		return v, v.kind == kindInteger || v.kind == kindFloat
	}
	return value{}, false
}

// pathText returns the path that attributes and `data.a.b` spell. ok is false for any other expression.
func pathText(n ast.Node) (text string, ok bool) {
	switch n := n.(type) {
	case *ast.ChainNode:
		return pathText(n.Node)
	case *ast.IdentifierNode:
		return n.Value, attribute(n.Value)
	case *ast.MemberNode:
		name, ok := n.Property.(*ast.StringNode)
		if !ok || n.Method || name.Value == "" || strings.Contains(name.Value, ".") {
			return "", false
		}
		text, ok = pathText(n.Node)
		return text + "." + name.Value, ok && (text == "data" || strings.HasPrefix(text, "data."))
	}
	return "", false
}

// The failures of the tree. They are of kinds, not of values: one is met for every event that lacks a field.
var (
	errOperand = errors.New("cannot decide: got an operand of and, or, not that is neither true nor false")
	errOrder   = errors.New("cannot compare: got values that have no order; want two numbers or two strings")
	errText    = errors.New("cannot search: got something else than a string")
	errIn      = errors.New("cannot search: in wants a list, or an object and a name")
)

func (n *node) eval(e *event.Event) (v value, err error) {
	switch n.op {
	case opLiteral:
		return n.literal, nil
	case opPath:
		return valueOf(n.path.Raw(e, nil)), nil
	case opTime:
		return value{kind: kindInteger, integer: e.Time}, nil
	}
	left, err := n.left.eval(e)
	if err != nil {
		return value{}, err
	}
	switch n.op {
	case opNot:
		if left.kind != kindBool {
			return value{}, errOperand
		}
		return truth(!left.truth), nil
	case opInList:
		for i := range n.list {
			if equal(&n.list[i], &left) {
				return truth(true), nil
			}
		}
		return truth(false), nil
	case opAnd, opOr:
		if left.kind != kindBool {
			return value{}, errOperand
		}
		if left.truth == (n.op == opOr) {
			return left, nil
		}
		return n.right.eval(e)
	}
	right, err := n.right.eval(e)
	if err != nil {
		return value{}, err
	}
	return binary(n.op, &left, &right)
}

func truth(b bool) value { return value{kind: kindBool, truth: b} }

func binary(o op, left, right *value) (v value, err error) {
	switch o {
	case opEqual:
		return truth(equal(left, right)), nil
	case opNotEqual:
		return truth(!equal(left, right)), nil
	case opIn:
		return in(left, right)
	case opContains, opStartsWith, opEndsWith:
		return search(o, left, right)
	}
	return order(o, left, right)
}

// equal is == of the language: numbers by value, other kinds never equal each other.
func equal(a, b *value) bool {
	switch {
	case a.kind == kindInteger && b.kind == kindInteger:
		return a.integer == b.integer
	case a.number() && b.number():
		return a.asFloat() == b.asFloat()
	case a.kind != b.kind:
		return false
	}
	switch a.kind {
	case kindBool:
		return a.truth == b.truth
	case kindString:
		return bytes.Equal(a.bytes, b.bytes)
	case kindOther:
		return runtime.Equal(decode(a.bytes), decode(b.bytes))
	}
	return true
}

func order(o op, a, b *value) (v value, err error) {
	switch {
	case a.kind == kindInteger && b.kind == kindInteger:
		return ordered(o, a.integer < b.integer, a.integer == b.integer), nil
	case a.number() && b.number():
		return ordered(o, a.asFloat() < b.asFloat(), a.asFloat() == b.asFloat()), nil
	case a.kind == kindString && b.kind == kindString:
		c := bytes.Compare(a.bytes, b.bytes)
		return ordered(o, c < 0, c == 0), nil
	}
	return value{}, errOrder
}

func ordered(o op, less, same bool) value {
	switch o {
	case opLess:
		return truth(less)
	case opLessEqual:
		return truth(less || same)
	case opMore:
		return truth(!less && !same)
	}
	return truth(!less)
}

// search is contains, startsWith and endsWith: nil is in nothing and holds nothing.
func search(o op, text, part *value) (v value, err error) {
	switch {
	case text.kind == kindNil || part.kind == kindNil:
		return truth(false), nil
	case text.kind != kindString || part.kind != kindString:
		return value{}, errText
	case o == opContains:
		return truth(bytes.Contains(text.bytes, part.bytes)), nil
	case o == opStartsWith:
		return truth(bytes.HasPrefix(text.bytes, part.bytes)), nil
	}
	return truth(bytes.HasSuffix(text.bytes, part.bytes)), nil
}

// in looks for needle among the elements of an array, or the names of an object, that the event holds.
func in(needle, where *value) (v value, err error) {
	switch {
	case where.kind == kindNil:
		return truth(false), nil
	case where.kind != kindOther:
		return value{}, errIn
	case where.bytes[0] == '[':
		for elements := jsonscan.Array(where.bytes); ; {
			raw, ok := elements.Next()
			if !ok {
				return truth(false), nil
			}
			if element := valueOf(raw, path.KindOf(raw)); equal(&element, needle) {
				return truth(true), nil
			}
		}
	case needle.kind == kindNil: // as the machine has it: nil stands for the empty name
		_, ok := jsonscan.Get(where.bytes, "")
		return truth(ok), nil
	case needle.kind != kindString:
		return value{}, errIn
	}
	_, ok := jsonscan.Get(where.bytes, string(needle.bytes))
	return truth(ok), nil
}
