// SPDX-License-Identifier: Apache-2.0

// Package look reads what the gates judge off a node. It changes nothing.
package look

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/amdsmi"
	"github.com/ironrail/ironrail/tool/dmesg"
	"github.com/ironrail/ironrail/tool/nvidiasmi"
)

// patience is how long one program may take: nvidia-smi -q of eight GPUs whose
// driver is not kept loaded takes half of it. A GPU whose system processor hangs
// lets it wait forever.
const patience = time.Minute

// looker reads one node.
type looker struct {
	nodes onnode.Nodes
	node  string
	seen  Seen
	text  bytes.Buffer // everything that was printed
}

// ReadNode reads a node, and returns what its programs printed besides. It changes
// nothing. An error means that the node could not be asked.
func ReadNode(ctx context.Context, nodes onnode.Nodes, node string, h *inventory.Hardware) (Seen, []byte, error) {
	l := &looker{nodes: nodes, node: node}
	if err := onnode.Agent(ctx, nodes, node, struct{}{}, &l.seen.Health, "health"); err != nil {
		return Seen{}, nil, err
	}
	steps := []func(context.Context) error{l.kernel, l.time}
	if n, _ := DeclaredGPUs(h, "nvidia"); n > 0 {
		steps = append(steps, l.nvidia, l.nvlink)
	}
	if n, _ := DeclaredGPUs(h, "amd"); n > 0 {
		steps = append(steps, l.amd)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return Seen{}, l.text.Bytes(), err
		}
	}
	return l.seen, l.text.Bytes(), nil
}

// run runs a program, and returns what it printed: with its errors when it failed.
// there is false when the node has no such program, or it does not end.
func (l *looker) run(ctx context.Context, argv ...string) (out []byte, status int, there bool, err error) {
	return l.runTo(ctx, nil, argv...)
}

// runTo is run; what the program prints is given to stdout while it comes, and of what
// is returned the middle may be left out.
func (l *looker) runTo(ctx context.Context, stdout io.Writer, argv ...string) (out []byte, status int, there bool, err error) {
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	o, err := l.nodes.Run(within, l.node, onnode.Command{Argv: argv, Stdout: stdout})
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		l.seen.Broken = append(l.seen.Broken, Broken{argv[0], fmt.Sprintf("no answer to %s within %s", strings.Join(argv, " "), patience)})
		return nil, 0, false, nil
	}
	if err != nil {
		return nil, 0, false, fmt.Errorf("node %s: %s: %w", l.node, argv[0], err)
	}
	fmt.Fprintf(&l.text, "$ %s\n%s%s", strings.Join(argv, " "), o.Stdout, o.Stderr)
	if o.Exit == onnode.NoProgram {
		gap := "there is no " + argv[0] + " on the node: what it would say was not looked at"
		if argv[0] != "journalctl" && argv[0] != "chronyc" && !slices.Contains(l.seen.Gaps, gap) { // dmesg and timedatectl take their place
			l.seen.Gaps = append(l.seen.Gaps, gap)
		}
		return nil, o.Exit, false, nil
	}
	if o.Exit != 0 || len(o.Stdout) == 0 {
		return append(bytes.Clone(o.Stdout), o.Stderr...), o.Exit, true, nil
	}
	return o.Stdout, o.Exit, true, nil
}

// broken notes a program that did not answer.
func (l *looker) broken(program string, out []byte, status int) {
	says := strings.TrimSpace(string(out))
	if first, _, more := strings.Cut(says, "\n"); more {
		says = first
	}
	if says == "" {
		says = "nothing"
	}
	l.seen.Broken = append(l.seen.Broken, Broken{program, fmt.Sprintf("exit status %d: %s", status, says[:min(len(says), 300)])})
}

// kernel reads the log of this boot: the journal has all of it, dmesg what the
// ring still holds.
func (l *looker) kernel(ctx context.Context) error {
	log, status, there, err := l.kernelLog(ctx, "journalctl", "-k", "-b", "--no-pager", "-o", "short-iso")
	if err == nil && (!there || status != 0) {
		log, status, there, err = l.kernelLog(ctx, "dmesg")
	}
	if err != nil || !there || status != 0 {
		return err
	}
	read, _, err := log.End()
	if err != nil {
		l.seen.Gaps = append(l.seen.Gaps, "the kernel log could not be read: "+err.Error())
		return nil
	}
	if log.Lost() {
		l.seen.Gaps = append(l.seen.Gaps, fmt.Sprintf("the kernel log has more events than can be kept: those behind the first %d were not looked at", len(read.Events)))
	}
	l.seen.Kernel = &read
	return nil
}

// kernelLog runs a program that prints the kernel's log, which a part that fails again
// and again makes as long as the disk allows.
func (l *looker) kernelLog(ctx context.Context, argv ...string) (log *dmesg.Stream, status int, there bool, err error) {
	log = dmesg.NewStream()
	lines := tool.Lines{Each: log.Line}
	_, status, there, err = l.runTo(ctx, &lines, argv...)
	_ = lines.Close()
	return log, status, there, err
}

func (l *looker) nvidia(ctx context.Context) error {
	out, status, there, err := l.run(ctx, "nvidia-smi", "-q", "-x")
	if err != nil || !there {
		return err
	}
	log, problems, err := nvidiasmi.ParseXML(out)
	if err != nil {
		l.broken("nvidia-smi", out, status)
		return nil
	}
	l.seen.NVIDIA = &log
	l.failed("nvidia-smi", problems)
	return nil
}

// failed notes what a program says has failed.
func (l *looker) failed(program string, problems tool.Problems) {
	for _, p := range problems {
		if p.Kind == tool.Failed || p.Kind == tool.Truncated {
			l.seen.Broken = append(l.seen.Broken, Broken{program, p.Text})
		}
	}
}

// nvlink reads states and counters of links. A GPU without links is no fault.
func (l *looker) nvlink(ctx context.Context) error {
	var all []byte
	for _, option := range []string{"-s", "-e"} {
		out, status, there, err := l.run(ctx, "nvidia-smi", "nvlink", option)
		if err != nil || !there {
			return err
		}
		if status == 0 {
			all = append(all, out...)
		}
	}
	if links, _, err := nvidiasmi.ParseNVLink(all); err == nil {
		l.seen.Links = &links
	}
	return nil
}

// amd asks amd-smi, command by command: each of them may be missing in a release.
func (l *looker) amd(ctx context.Context) error {
	var all []byte
	for _, command := range []string{"static", "metric", "bad-pages", "topology"} {
		out, status, there, err := l.run(ctx, "amd-smi", command, "--json")
		if err != nil || !there {
			return err
		}
		if status != 0 {
			l.broken("amd-smi "+command, out, status)
			continue
		}
		all = append(append(all, out...), '\n')
	}
	r, problems, err := amdsmi.Parse(all)
	if err != nil {
		return nil // noted above
	}
	l.seen.AMD = &r
	l.failed("amd-smi", problems)
	return nil
}
