// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/qemu"
	"github.com/ironrail/ironrail/internal/errkind"
)

// tpmStart is how long swtpm may take until its socket is there.
const tpmStart = 10 * time.Second

// tpm is the emulated TPM of one run of QEMU. What it keeps lies in files.
type tpm struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process has been reaped
}

// startTPM starts the TPM of a machine; nil where it has none.
func (m *machine) startTPM() (*tpm, error) {
	argv := qemu.TPMArgs(m.Machine, m.files)
	if argv == nil {
		return nil, nil
	}
	if err := os.Remove(m.files.TPMSocket); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	program, err := exec.LookPath(argv[0])
	if err != nil {
		return nil, errkind.New(errkind.Unsupported, "start: %w", err).Do("run ironrail-lab check --install")
	}
	t := &tpm{cmd: exec.Command(program, argv[1:]...), exited: make(chan struct{})}
	t.cmd.SysProcAttr = childAttr()
	if err := t.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	go func() {
		_ = t.cmd.Wait() // it ends with QEMU, or is killed
		close(t.exited)
	}()
	for until := time.Now().Add(tpmStart); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(m.files.TPMSocket); err == nil {
			return t, nil
		}
		select {
		case <-t.exited:
			return nil, fmt.Errorf("swtpm ended: see %s", m.files.TPMLog)
		default:
		}
	}
	t.end()
	return nil, errors.New("swtpm: no socket")
}

// end returns when the process is gone: another one may use its files then.
func (t *tpm) end() {
	if t == nil {
		return
	}
	_ = t.cmd.Process.Kill() // no effect on a process that is gone
	<-t.exited
}
