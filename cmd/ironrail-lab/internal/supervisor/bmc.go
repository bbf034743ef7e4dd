// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"time"

	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/ipmisim"
	"github.com/ironrail/ironrail/internal/errkind"
)

// bmcTimeout is how long an ipmi_sim may take until it answers, on a busy host.
const bmcTimeout = 20 * time.Second

// bmcRestart is the pause before an ipmi_sim that ended is started again, as a
// BMC's watchdog would.
const bmcRestart = time.Second

// keepBMC runs the machine's ipmi_sim until ctx ends.
func (m *machine) keepBMC(ctx context.Context) {
	for {
		err := m.runBMC(ctx)
		if ctx.Err() != nil {
			return
		}
		m.slog.Error("bmc ended", "node", m.Name, "err", err)
		m.note(Effect{Kind: BMCDown, Note: fmt.Sprint(err)})
		select {
		case <-ctx.Done():
			return
		case <-time.After(bmcRestart):
		}
	}
}

// runBMC starts ipmi_sim and waits for its end, which it brings about itself
// when ctx ends.
func (m *machine) runBMC(ctx context.Context) error {
	f := ipmisim.FilesIn(m.files.Dir)
	out, err := os.OpenFile(f.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.CommandContext(ctx, ipmisim.Program, ipmisim.Args(f)...)
	cmd.WaitDelay = time.Second
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = childAttr()
	if err := cmd.Start(); err != nil {
		return errkind.New(errkind.Unsupported, "start %s: %w", ipmisim.Program, err).Do("run ironrail-lab check --install")
	}
	if err := m.procs.Add(m.Name+"/bmc", cmd.Process.Pid); err != nil {
		m.slog.Error("process not recorded", "node", m.Name, "err", err)
	}
	err = cmd.Wait()
	if removeErr := m.procs.Remove(m.Name + "/bmc"); removeErr != nil {
		m.slog.Error("process not recorded", "node", m.Name, "err", removeErr)
	}
	return err
}

// The ASF presence ping and its answer (ASF 2.0 section 3.2.4.2; RMCP port 623).
var asfPing = []byte{0x06, 0x00, 0xff, 0x06, 0x00, 0x00, 0x11, 0xbe, 0x80, 0x01, 0x00, 0x00}

const asfPong = 0x40

// awaitBMC waits until the BMC answers a presence ping.
func awaitBMC(ctx context.Context, addr netip.Addr) error {
	ctx, cancel := context.WithTimeout(ctx, bmcTimeout)
	defer cancel()
	var last error
	for ctx.Err() == nil {
		if last = pingBMC(ctx, netip.AddrPortFrom(addr, 623)); last == nil {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	return errkind.New(errkind.Unreachable, "bmc %s: no answer in %v: %w", addr, bmcTimeout, last).Do("read bmc/ipmi_sim.log in the machine's folder")
}

func pingBMC(ctx context.Context, to netip.AddrPort) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "udp", to.String())
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(500 * time.Millisecond)); err != nil {
		return err
	}
	if _, err := conn.Write(asfPing); err != nil {
		return err
	}
	b := make([]byte, 64)
	n, err := conn.Read(b)
	if err != nil {
		return err
	}
	if n < 9 || b[8] != asfPong {
		return fmt.Errorf("%d bytes that are no presence pong", n)
	}
	return nil
}
