package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/client"
)

const (
	// sendLineBytesMax bounds one line of input: more than any node accepts as one event.
	sendLineBytesMax = 16 << 20
	// sendBatchBytes closes a request early, well below a node's default limit of a body.
	sendBatchBytes = 4 << 20
	// sendRejectsShown bounds how many refused events are printed as text.
	sendRejectsShown = 20
)

func newSend() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "send STREAM [FILE]",
		Short: "Send events, one CloudEvents object a line, from FILE or standard input",
		Long: "Sends events to a stream. Each line is a CloudEvents object; `id` and `type` are required.\n" +
			"A node that is busy is waited for. Sending the same events again adds nothing while their ids are remembered.",
		Example: `  echo '{"id":"e-1","type":"impression","data":{"user":"u1","ad":"a9"}}' | weir send impressions`,
		Args:    wrongUse(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := clientOf(cmd)
			if err != nil {
				return err
			}
			in := cmd.InOrStdin()
			if len(args) == 2 && args[1] != "-" {
				file, err := os.Open(args[1])
				if err != nil {
					return fmt.Errorf("cannot read events: %w", err)
				}
				defer file.Close()
				in = file
			}
			ack, _ := cmd.Flags().GetString("ack")
			size, _ := cmd.Flags().GetInt("batch")
			if ack != "" && ack != "memory" && ack != "disk" {
				return &usageError{fmt.Errorf("cannot send with --ack %q: want memory or disk", ack)}
			}
			if size < 1 {
				return &usageError{fmt.Errorf("cannot send batches of %d events: want 1 or more", size)}
			}
			s := sender{client: c, stream: args[0], ack: ack, batchMax: size, rejectsMax: sendRejectsShown}
			if wantsJSON(cmd) {
				s.rejectsMax = int(^uint(0) >> 1)
			}
			sendErr := s.sendAll(cmd.Context(), in)
			if err := s.print(cmd); err != nil {
				return err
			}
			if sendErr == nil && s.rejected > 0 {
				return errSilent
			}
			return sendErr
		},
	}
	addServerFlag(cmd)
	cmd.Flags().String("ack", "", "when an event counts as sent: memory or disk (default: disk)")
	cmd.Flags().Int("batch", 500, "events a request at most")
	return cmd
}

// sender posts lines in batches and adds up what became of them.
type sender struct {
	client     *client.Client
	stream     string
	ack        string
	batchMax   int
	rejectsMax int

	total    client.SendResult
	rejected int64
	lines    int // lines of earlier requests, blank ones included
	batch    bytes.Buffer
	places   []int // the line number of each event of the batch
}

func (s *sender) sendAll(ctx context.Context, in io.Reader) error {
	s.total.Rejected = []client.Rejection{}
	scanner := bufio.NewScanner(in)
	scanner.Buffer(make([]byte, 0, 64<<10), sendLineBytesMax)
	for scanner.Scan() {
		s.lines++
		line := bytes.TrimSpace(scanner.Bytes())
		if len(line) == 0 {
			continue
		}
		s.batch.Write(line)
		s.batch.WriteByte('\n')
		s.places = append(s.places, s.lines)
		if len(s.places) >= s.batchMax || s.batch.Len() >= sendBatchBytes {
			if err := s.flush(ctx); err != nil {
				return err
			}
		}
	}
	if err := scanner.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("line %d is longer than %d bytes", s.lines+1, sendLineBytesMax)
		}
		return errors.Join(fmt.Errorf("cannot read events: %w", err), s.flush(ctx))
	}
	return s.flush(ctx)
}

func (s *sender) flush(ctx context.Context) error {
	if len(s.places) == 0 {
		return nil
	}
	result, err := s.client.SendNDJSON(ctx, s.stream, s.ack, s.batch.Bytes())
	if err != nil {
		first, last := s.places[0], s.places[len(s.places)-1]
		if first == last {
			return fmt.Errorf("cannot send line %d: %w", first, err)
		}
		return fmt.Errorf("cannot send lines %d to %d: %w", first, last, err)
	}
	s.total.Accepted += result.Accepted
	s.total.Duplicates += result.Duplicates
	s.rejected += int64(len(result.Rejected))
	for _, r := range result.Rejected {
		if r.Index >= 0 && r.Index < len(s.places) {
			r.Index = s.places[r.Index] - 1 // a place in the whole input, from 0
		}
		if len(s.total.Rejected) < s.rejectsMax {
			s.total.Rejected = append(s.total.Rejected, r)
		}
	}
	s.batch.Reset()
	s.places = s.places[:0]
	return nil
}

func (s *sender) print(cmd *cobra.Command) error {
	if wantsJSON(cmd) {
		return printJSON(cmd.OutOrStdout(), s.total)
	}
	for _, r := range s.total.Rejected {
		fmt.Fprintf(cmd.ErrOrStderr(), "line %d: %s (%s)\n", r.Index+1, r.Error, r.Code)
	}
	if more := s.rejected - int64(len(s.total.Rejected)); more > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "and %d more refused\n", more)
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "accepted %d, duplicates %d, rejected %d\n",
		s.total.Accepted, s.total.Duplicates, s.rejected)
	return err
}
