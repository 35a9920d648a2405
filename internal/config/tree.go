package config

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// aliasDepthMax bounds chains of aliases, so that one that refers to itself ends.
const aliasDepthMax = 8

// value is one setting's value: a node of the file, or text from a flag or the environment (node nil).
type value struct {
	path string
	node ast.Node
	text string
	at   place
}

// field is one name that a section knows, with what reads it.
type field struct {
	name string
	read func(value)
}

// section reads a mapping. Names that fields does not list are mistakes, and so are names given twice.
func (r *reader) section(v value, fields []field) {
	r.entries(v, func(name string, key place, child value) {
		for _, f := range fields {
			if f.name == name {
				f.read(child)
				return
			}
		}
		message, cure := unknownField(name, v.path, fields)
		r.mistake(child.path, key, message, cure)
	})
}

// entries calls each for every entry of a mapping, with the place of its key.
func (r *reader) entries(v value, each func(name string, key place, child value)) {
	node, ok := r.resolve(v)
	if !ok {
		return
	}
	mapping, ok := node.(ast.MapNode)
	if !ok {
		if node.Type() != ast.NullType { // an empty section is a section without settings
			r.mistake(v.path, r.placeOf(node), "want a section of settings, got "+kindOf(node), "write its settings below it, indented, each as name: value")
		}
		return
	}
	seen := map[string]bool{}
	for it := mapping.MapRange(); it.Next(); {
		key := it.Key()
		at := r.placeOf(key)
		if key.Type() != ast.StringType && key.Type() != ast.IntegerType && key.Type() != ast.BoolType {
			r.mistake(v.path, at, "want the name of a setting, got "+kindOf(key), "write name: value; merge keys (<<) and complex keys are not read")
			continue
		}
		name := key.GetToken().Value
		child := value{path: join(v.path, name), node: it.Value()}
		if seen[name] {
			r.mistake(child.path, at, "given twice in this section", "remove one of them")
			continue
		}
		seen[name] = true
		r.places[child.path] = at
		each(name, at, child)
	}
}

// list calls each for every element of a sequence and returns how many there are; ok is false when it is none.
func (r *reader) list(v value, each func(i int, child value)) {
	node, ok := r.resolve(v)
	if !ok || node.Type() == ast.NullType {
		return
	}
	seq, ok := node.(*ast.SequenceNode)
	if !ok {
		r.mistake(v.path, r.placeOf(node), "want a list, got "+kindOf(node), "write its elements below it, each after \"- \", or as [a, b]")
		return
	}
	for i, element := range seq.Values {
		child := value{path: fmt.Sprintf("%s[%d]", v.path, i), node: element}
		if element != nil {
			r.places[child.path] = r.placeOf(element)
		}
		each(i, child)
	}
}

// scalar returns the text of a single value with its ${…} expanded.
func (r *reader) scalar(v value) (text string, at place, ok bool) {
	if v.node == nil && v.at.excerpt != "" {
		r.places[v.path] = v.at
		return v.text, v.at, true
	}
	node, ok := r.resolve(v)
	if !ok {
		return "", place{}, false
	}
	at = r.placeOf(node)
	r.places[v.path] = at
	switch n := node.(type) {
	case *ast.StringNode:
		text = n.Value
	case *ast.LiteralNode:
		text = n.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		text = n.GetToken().Value
	case *ast.NullNode:
		r.mistake(v.path, at, "has no value", "give it one, or remove the line to use the default")
		return "", at, false
	default:
		r.mistake(v.path, at, "want one value, got "+kindOf(node), "write one value behind the colon")
		return "", at, false
	}
	expanded, message, cure := expand(strings.TrimSpace(text), r.env)
	if message != "" {
		r.mistake(v.path, at, message, cure)
		return "", at, false
	}
	return expanded, at, true
}

// resolve looks through anchors and aliases. It reports its own mistakes.
func (r *reader) resolve(v value) (ast.Node, bool) {
	node := v.node
	for range aliasDepthMax {
		switch n := node.(type) {
		case *ast.AnchorNode:
			if n.Name != nil && n.Name.GetToken() != nil {
				r.anchors[n.Name.GetToken().Value] = n.Value
			}
			node = n.Value
		case *ast.AliasNode:
			name := ""
			if n.Value != nil && n.Value.GetToken() != nil {
				name = n.Value.GetToken().Value
			}
			target, ok := r.anchors[name]
			if !ok {
				r.mistake(v.path, r.placeOf(n), fmt.Sprintf("alias *%s refers to nothing above it", name), fmt.Sprintf("mark the value it stands for with &%s, above this line", name))
				return nil, false
			}
			node = target
		case *ast.TagNode:
			r.mistake(v.path, r.placeOf(n), "tags are not read", "remove the tag: each setting knows its type")
			return nil, false
		case nil:
			r.mistake(v.path, r.where(v.path), "has no value", "give it one, or remove the line to use the default")
			return nil, false
		default:
			return node, true
		}
	}
	r.mistake(v.path, r.placeOf(node), "an alias that leads back to itself", "write the value out")
	return nil, false
}

// placeOf returns where a node begins. A mapping's own token is the colon of its first entry, so that its key is asked.
func (r *reader) placeOf(node ast.Node) place {
	switch n := node.(type) {
	case nil:
		return place{}
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return r.placeOf(n.Values[0])
		}
	case *ast.MappingValueNode:
		return r.placeOf(n.Key)
	}
	t := node.GetToken()
	if t == nil || t.Position == nil {
		return place{}
	}
	return r.inFile(t.Position.Line, t.Position.Column)
}

func kindOf(node ast.Node) string {
	switch node.(type) {
	case ast.MapNode:
		return "a section"
	case *ast.SequenceNode:
		return "a list"
	case *ast.NullNode:
		return "nothing"
	case *ast.MergeKeyNode:
		return "a merge key"
	case *ast.MappingKeyNode:
		return "a complex key"
	default:
		return "a single value"
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
