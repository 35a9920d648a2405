package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/spf13/cobra"
)

func newTail() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tail STREAM",
		Short: "Print the events of a stream, one CloudEvent a line",
		Example: "  weir tail impressions --segment u1\n" +
			"  weir tail impressions --follow --from 2026-11-30T12:00:00Z",
		Args: wrongUse(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := clientOf(cmd)
			if err != nil {
				return err
			}
			query := url.Values{}
			for _, name := range []string{"segment", "partition", "offset", "from", "to", "limit"} {
				if f := cmd.Flags().Lookup(name); f.Changed {
					query.Set(name, f.Value.String())
				}
			}
			if follow, _ := cmd.Flags().GetBool("follow"); follow {
				query.Set("follow", "true")
			}
			body, err := c.Events(cmd.Context(), args[0], query)
			if err != nil {
				return err
			}
			defer body.Close()
			if _, err := io.Copy(cmd.OutOrStdout(), body); err != nil && !errors.Is(err, context.Canceled) {
				return fmt.Errorf("cannot read on: %w", err)
			}
			return nil
		},
	}
	addServerFlag(cmd)
	cmd.Flags().String("segment", "", "only this segment's events")
	cmd.Flags().Int("partition", 0, "only this partition's events")
	cmd.Flags().Int64("offset", 0, "start at this offset of the partition")
	cmd.Flags().String("from", "", "only events at or after this instant (ms or RFC 3339)")
	cmd.Flags().String("to", "", "only events before this instant (ms or RFC 3339)")
	cmd.Flags().Int64P("limit", "n", 1000, "print at most this many events")
	cmd.Flags().BoolP("follow", "f", false, "wait for more events")
	return cmd
}
