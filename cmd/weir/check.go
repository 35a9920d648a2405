package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/config"
)

func newCheck() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check -c FILE",
		Short: "Check a configuration and name every mistake in it",
		Args:  wrongUse(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, _ := cmd.Flags().GetString("config")
			if file == "" {
				return &usageError{errors.New("cannot check without a file: want -c FILE")}
			}
			return check(cmd, file)
		},
	}
	cmd.Flags().StringP("config", "c", "", "configuration file (YAML)")
	return cmd
}

// checkReport is what check prints with -o json.
type checkReport struct {
	File     string           `json:"file"`
	OK       bool             `json:"ok"`
	Mistakes []config.Mistake `json:"mistakes"`
	Warnings []config.Mistake `json:"warnings"`
}

func check(cmd *cobra.Command, file string) error {
	report := checkReport{File: file, Mistakes: []config.Mistake{}, Warnings: []config.Mistake{}}
	cfg, warnings, err := config.Load(file, os.LookupEnv)
	var mistakes *config.Error
	switch {
	case errors.As(err, &mistakes):
		report.Mistakes = mistakes.Mistakes
	case err != nil:
		return err
	default:
		report.OK = true
		report.Warnings = append(report.Warnings, warnings...)
	}
	if wantsJSON(cmd) {
		if err := printJSON(cmd.OutOrStdout(), report); err != nil {
			return err
		}
		if !report.OK {
			return errSilent
		}
		return nil
	}
	if !report.OK {
		return err
	}
	printMistakes(cmd.OutOrStdout(), "warning: ", file, warnings)
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is right: %s, %s, memory %s\n",
		file, several(len(cfg.Streams), "stream"), several(len(cfg.Counters), "counter"), config.FormatSize(cfg.MemoryBytes))
	return err
}

// several is a number of things, such as "1 stream" or "3 streams".
func several(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
