package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/config"
	"github.com/weirstream/weir/server"
)

func newRun() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run a node",
		Long: "Runs a node until SIGTERM or an interrupt, then finishes what it has taken and leaves.\n" +
			"Without -c it keeps one stream, events, and no counters.",
		Example: "  weir run -c weir.yaml --data /var/lib/weir",
		Args:    wrongUse(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, _ := cmd.Flags().GetString("config")
			cfg, err := loadConfig(cmd, file)
			if err != nil {
				return err
			}
			logger, err := loggerOf(cmd)
			if err != nil {
				return err
			}
			if err := boundConnections(cfg, logger); err != nil {
				return err
			}
			shareCores()
			return server.Run(cmd.Context(), server.Options{
				Config: cfg, Version: version(), Logger: logger, Fatal: leave(logger),
				Ready: func(a server.Addresses) {
					fmt.Fprintf(cmd.OutOrStdout(), "weir %s is ready: HTTP and page http://%s, RESP %s, data %s\n", version(), a.HTTP, a.RESP, cfg.Data)
				},
			})
		},
	}
	cmd.Flags().StringP("config", "c", "", "configuration file (YAML)")
	addNodeFlags(cmd)
	return cmd
}

// nodeFlags are the flags that stand for settings of the configuration.
var nodeFlags = []struct{ flag, path, about string }{
	{"data", "data", "folder of streams and counters"},
	{"http", "listen.http", "HTTP address"},
	{"resp", "listen.resp", "RESP address"},
	{"memory", "memory", "memory that the process keeps to, such as 1GiB"},
}

func addNodeFlags(cmd *cobra.Command) {
	for _, f := range nodeFlags {
		cmd.Flags().String(f.flag, "", f.about+" (setting: "+f.path+")")
	}
	cmd.Flags().String("log-level", "info", "debug, info, warn or error")
	cmd.Flags().String("log-format", "text", "text or json")
}

// loadConfig reads the file, or the defaults where it is empty, under what flags and environment say. It prints warnings.
func loadConfig(cmd *cobra.Command, file string) (*config.Config, error) {
	cfg, warnings, err := config.Load(file, os.LookupEnv, nodeFlagsOf(cmd)...)
	if err != nil {
		return nil, err
	}
	printMistakes(cmd.ErrOrStderr(), "warning: ", file, warnings)
	return cfg, nil
}

// nodeFlagsOf returns the settings that were given as flags.
func nodeFlagsOf(cmd *cobra.Command) []config.Flag {
	var flags []config.Flag
	for _, f := range nodeFlags {
		if flag := cmd.Flags().Lookup(f.flag); flag.Changed {
			flags = append(flags, config.Flag{Name: "--" + f.flag, Path: f.path, Value: flag.Value.String()})
		}
	}
	return flags
}

func printMistakes(w io.Writer, prefix, file string, mistakes []config.Mistake) {
	for _, m := range mistakes {
		fmt.Fprint(w, prefix+m.Format(file))
	}
}

func loggerOf(cmd *cobra.Command) (*slog.Logger, error) {
	level, _ := cmd.Flags().GetString("log-level")
	format, _ := cmd.Flags().GetString("log-format")
	var parsed slog.Level
	if err := parsed.UnmarshalText([]byte(level)); err != nil {
		return nil, &usageError{fmt.Errorf("cannot log at level %q: want debug, info, warn or error", level)}
	}
	options := &slog.HandlerOptions{Level: parsed, ReplaceAttr: plainError}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(cmd.ErrOrStderr(), options)), nil
	}
	return nil, &usageError{fmt.Errorf("cannot log as %q: want text or json", format)}
}

// plainError logs an error as its text. slog's text handler would print it with %+v, for which Pebble's errors add the
// stack of where they were made.
func plainError(_ []string, a slog.Attr) slog.Attr {
	if err, ok := a.Value.Any().(error); ok {
		a.Value = slog.StringValue(err.Error())
	}
	return a
}

// leave returns what ends the process when storage fails for good.
func leave(logger *slog.Logger) func(error) {
	return func(err error) {
		logger.Error("storage failed, leaving; what was acknowledged is on disk", "err", err)
		os.Exit(exitFailed)
	}
}
