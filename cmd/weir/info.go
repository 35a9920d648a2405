package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func newInfo() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "info",
		Short: "Print what a node holds and how it does",
		Args:  wrongUse(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := clientOf(cmd)
			if err != nil {
				return err
			}
			raw, err := c.GetJSON(cmd.Context(), "/v1/info")
			if err != nil {
				return err
			}
			if wantsJSON(cmd) {
				return printJSON(cmd.OutOrStdout(), raw)
			}
			var tree any
			if err := json.Unmarshal(raw, &tree); err != nil {
				return fmt.Errorf("cannot read the answer: %w", err)
			}
			printTree(cmd.OutOrStdout(), tree, 0)
			return nil
		},
	}
	addServerFlag(cmd)
	return cmd
}

// printTree prints JSON as indented lines: it shows whatever the node says, also what this version does not know. What
// holds nothing nested takes one line.
func printTree(w io.Writer, v any, depth int) {
	indent := strings.Repeat("  ", depth)
	switch v := v.(type) {
	case map[string]any:
		for _, name := range membersOf(v) {
			if isLeaf(v[name]) {
				fmt.Fprintf(w, "%s%s: %s\n", indent, name, leafOf(name, v[name]))
			} else if line, ok := flat(v[name]); ok {
				fmt.Fprintf(w, "%s%s: %s\n", indent, name, line)
			} else {
				fmt.Fprintf(w, "%s%s:\n", indent, name)
				printTree(w, v[name], depth+1)
			}
		}
	case []any:
		for _, item := range v {
			if isLeaf(item) {
				fmt.Fprintf(w, "%s- %s\n", indent, leaf(item))
			} else if line, ok := flat(item); ok {
				fmt.Fprintf(w, "%s- %s\n", indent, line)
			} else {
				var lines strings.Builder
				printTree(&lines, item, depth+1)
				fmt.Fprintf(w, "%s- %s", indent, strings.TrimLeft(lines.String(), " "))
			}
		}
	default:
		fmt.Fprintf(w, "%s%s\n", indent, leaf(v))
	}
}

// membersOf returns the names of v's members: the one that says which it is, those that take a line, then the others.
func membersOf(v map[string]any) []string {
	rank := func(name string) int {
		_, short := flat(v[name])
		switch {
		case name == "name" || name == "partition":
			return 0
		case isLeaf(v[name]):
			return 1
		case short:
			return 2
		}
		return 3
	}
	return slices.SortedFunc(maps.Keys(v), func(a, b string) int {
		return cmp.Or(rank(a)-rank(b), cmp.Compare(a, b))
	})
}

// flat returns v on one line, if it is an object that holds no other.
func flat(v any) (line string, ok bool) {
	object, ok := v.(map[string]any)
	if !ok {
		return "", false
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if !isLeaf(object[name]) {
			return "", false
		}
		part := name + " " + leafOf(name, object[name])
		if name == "partition" {
			parts = slices.Insert(parts, 0, part)
			continue
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", "), true
}

// leafOf is leaf, with the instants among the members of /v1/info readable.
func leafOf(name string, v any) string {
	if ms, ok := v.(float64); ok && slices.Contains([]string{"now", "newest", "horizon", "complete_since"}, name) {
		return instant(int64(ms))
	}
	return leaf(v)
}

func isLeaf(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	default:
		return true
	}
}

func leaf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		if v == float64(int64(v)) {
			return fmt.Sprint(int64(v))
		}
		return fmt.Sprint(v)
	case nil:
		return "none"
	case map[string]any, []any:
		return "none"
	default:
		return fmt.Sprint(v)
	}
}
