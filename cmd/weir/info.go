package main

import (
	"encoding/json"
	"fmt"
	"io"
	"sort"
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

// printTree prints JSON as indented lines: it shows whatever the node says, also what this version does not know.
func printTree(w io.Writer, v any, depth int) {
	indent := strings.Repeat("  ", depth)
	switch v := v.(type) {
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		sort.Strings(names)
		for _, name := range names {
			if isLeaf(v[name]) {
				fmt.Fprintf(w, "%s%s: %s\n", indent, name, leaf(v[name]))
				continue
			}
			fmt.Fprintf(w, "%s%s:\n", indent, name)
			printTree(w, v[name], depth+1)
		}
	case []any:
		for _, item := range v {
			if isLeaf(item) {
				fmt.Fprintf(w, "%s- %s\n", indent, leaf(item))
				continue
			}
			fmt.Fprintf(w, "%s-\n", indent)
			printTree(w, item, depth+1)
		}
	default:
		fmt.Fprintf(w, "%s%s\n", indent, leaf(v))
	}
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
