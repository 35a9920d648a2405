package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	startWait = 30 * time.Second // for a process to answer
	stopWait  = 30 * time.Second // for a process to leave after SIGTERM
	pollEvery = 20 * time.Millisecond
	// clockTicks is the unit of utime and stime in /proc/PID/stat: USER_HZ, 100 on every Linux that Go runs on.
	clockTicks = 100
)

// process is a server under test.
type process struct {
	cmd *exec.Cmd
	log bytes.Buffer
	dir string // removed at stop

	http string // host:port; empty for Redis
	resp string // host:port
}

// buildWeir builds the binary that is measured and returns its path and what removes it.
func buildWeir(ctx context.Context) (path string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "weir-bench-bin-")
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join(dir, "weir")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", path, "github.com/weirstream/weir/cmd/weir").CombinedOutput()
	if err != nil {
		return "", nil, fmt.Errorf("cannot build weir: %w\n%s", err, out)
	}
	return path, func() { os.RemoveAll(dir) }, nil
}

// startWeir runs a node with the given settings after those that every run has (folder and addresses).
func startWeir(ctx context.Context, binary, settings string) (*process, error) {
	dir, err := os.MkdirTemp("", "weir-bench-")
	if err != nil {
		return nil, err
	}
	p := &process{dir: dir}
	if p.http, err = freeAddr(); err != nil {
		return nil, err
	}
	if p.resp, err = freeAddr(); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "weir.yaml")
	text := fmt.Sprintf("data: %s\nlisten: {http: %q, resp: %q}\n%s", filepath.Join(dir, "data"), p.http, p.resp, settings)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	p.cmd = exec.Command(binary, "run", "-c", file)
	if err := p.start(ctx, func() bool {
		resp, err := http.Get("http://" + p.http + "/readyz")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}); err != nil {
		return nil, err
	}
	return p, nil
}

// startRedis runs a Redis without persistence, in a folder of its own.
func startRedis(ctx context.Context) (*process, error) {
	dir, err := os.MkdirTemp("", "weir-bench-redis-")
	if err != nil {
		return nil, err
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(addr)
	p := &process{dir: dir, resp: addr}
	p.cmd = exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir)
	if err := p.start(ctx, func() bool {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err != nil {
			return false
		}
		conn.Close()
		return true
	}); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) start(ctx context.Context, ready func() bool) error {
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if err := p.cmd.Start(); err != nil {
		return err
	}
	for deadline := time.Now().Add(startWait); time.Now().Before(deadline); time.Sleep(pollEvery) {
		if ctx.Err() != nil {
			break
		}
		if ready() {
			return nil
		}
	}
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	return fmt.Errorf("%s did not become ready: %s", filepath.Base(p.cmd.Path), p.log.String())
}

// stop ends the process in order and removes its folder.
func (p *process) stop() error {
	defer os.RemoveAll(p.dir)
	return p.end()
}

// end ends the process in order and keeps its folder.
func (p *process) end() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(stopWait, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("%s ended badly: %w\n%s", filepath.Base(p.cmd.Path), err, p.log.String())
	}
	return nil
}

// cpuSeconds is the user and system time that the process has used.
func (p *process) cpuSeconds() (float64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	const utime, stime = 11, 12 // counted from the field behind the command's closing bracket
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) <= stime {
		return 0, errors.New("cannot read /proc/PID/stat")
	}
	user, err1 := strconv.ParseFloat(fields[utime], 64)
	system, err2 := strconv.ParseFloat(fields[stime], 64)
	return (user + system) / clockTicks, errors.Join(err1, err2)
}

// rssBytes returns the resident memory of the process, now and at its highest.
func (p *process) rssBytes() (now, highest int64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(status)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		kib, _ := strconv.ParseInt(fields[1], 10, 64)
		switch fields[0] {
		case "VmRSS:":
			now = kib << 10
		case "VmHWM:":
			highest = kib << 10
		}
	}
	return now, highest, nil
}

// ownCPUSeconds is the user and system time of this process: the client's share.
func ownCPUSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// printMachine prints what every figure depends on.
func printMachine(durability string) {
	model := "unknown processor"
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	commit := "unknown"
	if out, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output(); err == nil {
		commit = strings.TrimSpace(string(out))
	}
	fmt.Printf("command:    go run ./bench %s\n", strings.Join(os.Args[1:], " "))
	fmt.Printf("machine:    %s, %d cores, %s/%s, client on the same machine\n", model, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
	fmt.Printf("built with: %s at commit %s\n", runtime.Version(), commit)
	fmt.Printf("durability: %s\n", durability)
}

// spread is the minimum, median and maximum of a few figures.
func spread(figures []float64) (lowest, median, highest float64) {
	sorted := slices.Sorted(slices.Values(figures))
	middle := len(sorted) / 2
	median = sorted[middle]
	if len(sorted)%2 == 0 {
		median = (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[0], median, sorted[len(sorted)-1]
}
