// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/qemu"
	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/qmp"
	"github.com/ironrail/ironrail/internal/errkind"
)

// Deadlines of the calls to QEMU. They are generous: emulators share few cores.
const (
	connectTimeout = 30 * time.Second
	commandTimeout = 10 * time.Second
	quitTimeout    = 3 * time.Second
)

// Niceness is by how much the supervisor and the BMCs go before the machines: an
// emulator takes all the time that it gets, and a BMC that answers later than
// after a second is sent its command again.
const Niceness = "5"

// vm is one run of QEMU: from power on or reset to power off or the next reset.
type vm struct {
	cmd     *exec.Cmd
	exited  chan struct{} // closed when the process has been reaped
	exitErr error         // valid after exited
	client  *qmp.Client
	onGuest func(reset bool) // the guest reset itself, or switched itself off
	limited bool             // it has a control group
	tpm     *tpm             // nil: it has none
}

// launchVM starts the process of an argument vector; its output goes to the log file.
func launchVM(logFile string, argv []string) (*vm, error) {
	out, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	program, err := exec.LookPath(argv[0])
	if err != nil {
		return nil, errkind.New(errkind.Unsupported, "start: %w", err).Do("run ironrail-lab check --install")
	}
	cmd := exec.Command("nice", append([]string{"-n", Niceness, program}, argv[1:]...)...) // becomes QEMU
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = childAttr()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	v := &vm{cmd: cmd, exited: make(chan struct{})}
	go func() {
		v.exitErr = cmd.Wait()
		close(v.exited)
	}()
	return v, nil
}

// childAttr lets no child outlive the supervisor, however that ends, and keeps
// a terminal's Ctrl-C from it.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// connect opens QMP; it gives up early when the process ends.
func (v *vm) connect(ctx context.Context, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	go func() {
		select {
		case <-v.exited:
			cancel()
		case <-ctx.Done():
		}
	}()
	client, err := qmp.Dial(ctx, socket, v.event)
	if err != nil {
		return err
	}
	v.client = client
	return nil
}

// event runs on QMP's reader: it only takes notes. QEMU has paused the machine.
func (v *vm) event(e qmp.Event) {
	if e.Name != "SHUTDOWN" {
		return
	}
	var data struct {
		Reason string `json:"reason"`
	}
	if json.Unmarshal(e.Data, &data) != nil {
		return
	}
	switch data.Reason {
	case "guest-reset":
		v.onGuest(true)
	case "guest-shutdown":
		v.onGuest(false)
	}
}

// begin lets a machine run that was started stopped.
func (v *vm) begin(ctx context.Context, unplugged bool) error {
	if unplugged {
		if err := v.link(ctx, false); err != nil {
			return err
		}
	}
	return v.execute(ctx, "cont", nil, nil)
}

// link plugs or unplugs the management NIC's cable.
func (v *vm) link(ctx context.Context, up bool) error {
	return v.execute(ctx, "set_link", map[string]any{"name": qemu.BootNIC, "up": up}, nil)
}

// written returns what was written to the disk since the start.
func (v *vm) written(ctx context.Context) (bytes, writes int64, err error) {
	var devices []struct {
		Device string `json:"device"`
		Stats  struct {
			Bytes  int64 `json:"wr_bytes"`
			Writes int64 `json:"wr_operations"`
		} `json:"stats"`
	}
	if err := v.execute(ctx, "query-blockstats", nil, &devices); err != nil {
		return 0, 0, err
	}
	for _, d := range devices {
		if d.Device == "d0" {
			return d.Stats.Bytes, d.Stats.Writes, nil
		}
	}
	return 0, 0, errors.New("query-blockstats: no disk d0")
}

func (v *vm) execute(ctx context.Context, command string, args, out any) error {
	if v.client == nil {
		return errors.New("qmp: not connected")
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	return v.client.Execute(ctx, command, args, out)
}

// end switches the machine off the hard way and returns when the process is
// gone. The disk's cache is the kernel's, so nothing that was written is lost.
func (v *vm) end(ctx context.Context) {
	if v.client != nil {
		quit, cancel := context.WithTimeout(ctx, quitTimeout)
		_ = v.client.Execute(quit, "quit", nil, nil)
		select {
		case <-v.exited:
		case <-quit.Done():
		}
		cancel()
	}
	_ = v.cmd.Process.Kill() // no effect on a process that is gone
	<-v.exited
	v.tpm.end()
	if v.client != nil {
		_ = v.client.Close()
	}
}
