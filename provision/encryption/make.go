// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/hostfile"
	"github.com/ironrail/ironrail/internal/onnode"
)

// apply brings every volume to where it is unlocked and mounted. Each part is skipped where it
// is done already, so that it may be cut off anywhere and begun again.
func (w *work) apply(ctx context.Context) error {
	var down []volume
	for _, v := range w.volumes {
		if slices.ContainsFunc(down, func(o volume) bool { return strings.HasPrefix(v.mount, o.mount+"/") }) {
			continue // its folder would be made below a mount that is not there, and be hidden by it
		}
		up, err := w.applyVolume(ctx, v)
		if err != nil {
			return fmt.Errorf("volume %s: %w", v.label, err)
		}
		if !up {
			down = append(down, v)
		}
	}
	return nil
}

// applyVolume reports whether systemd unlocked and mounted a volume. What does not come up is seen
// when it is read back.
func (w *work) applyVolume(ctx context.Context, v volume) (up bool, err error) {
	if err := w.encrypt(ctx, v); err != nil {
		return false, err
	}
	if err := w.enroll(ctx, v); err != nil {
		return false, err
	}
	if err := w.enter(ctx, crypttab, v.crypttabLine(), 0); err != nil {
		return false, err
	}
	// What systemd does at each start, so that a TPM that does not unlock is seen now.
	w.say("unlock " + v.label)
	if out, err := w.run(ctx, "systemctl", "start", v.unlockUnit()); err != nil || out.Exit != 0 {
		return false, err
	}
	if err := w.format(ctx, v); err != nil {
		return false, err
	}
	if err := w.enter(ctx, fstab, v.fstabLine(), 1); err != nil {
		return false, err
	}
	if err := onnode.Exec(ctx, w.nodes, w.node, "mkdir", "-p", "--", v.mount); err != nil {
		return false, err
	}
	w.say("mount " + v.label)
	out, err := w.run(ctx, "systemctl", "start", v.mountUnit())
	return err == nil && out.Exit == 0, err
}

// encrypt makes the LUKS2 volume, on a device that is blank or has this very volume without a
// key. The recovery key is on the controller's disk before. 256 random bits need no slow
// derivation: this is how systemd-cryptenroll enrolls recovery keys too.
func (w *work) encrypt(ctx context.Context, v volume) error {
	h, err := w.header(ctx, v.device)
	switch {
	case err != nil:
		return err
	case h.uuid == v.uuid && (h.slots > 0 || h.subsystem != fresh):
		return nil
	case h.uuid != "" && h.uuid != v.uuid:
		return errkind.New(errkind.Refused, "%s holds another LUKS2 volume", v.device)
	case h.uuid == "":
		if is, err := w.content(ctx, v.device); err != nil || is != "" {
			return errkind.New(errkind.Refused, "%s is not blank any more: %q, %v", v.device, is, err)
		}
	}
	key, err := w.recovery.Make(w.node, v.label, v.uuid)
	if err != nil {
		return err
	}
	w.say("encrypt " + v.label + "; its recovery key is " + v.uuid + ".key beside the controller's keys: `ironrail state backup` with a recipient or a passphrase copies it")
	_, err = onnode.Feed(ctx, w.nodes, w.node, []byte(key.Text), "cryptsetup", "luksFormat", "--batch-mode", "--type", "luks2", "--uuid", v.uuid, "--label", v.label, "--subsystem", fresh,
		"--pbkdf", "pbkdf2", "--hash", "sha512", "--pbkdf-force-iterations", "1000", "--key-file", "-", v.device)
	return err
}

// enrollScript hands the key on its standard input to the program in its environment, which
// only root can read: systemd-cryptenroll 252 reads no key from a pipe.
const enrollScript = `PASSWORD="$(cat)" exec systemd-cryptenroll "$@"`

// enroll has the TPM unlock a volume, where it does not. What was enrolled before goes first:
// systemd-cryptenroll 252 does nothing where the PCRs are the same, also after the TPM was
// cleared. The recovery key stays.
func (w *work) enroll(ctx context.Context, v volume) error {
	h, err := w.header(ctx, v.device)
	if err != nil {
		return err
	}
	opens, err := w.unlocks(ctx, v)
	if err != nil || opens && h.token {
		return err
	}
	key, err := w.recovery.Find(v.uuid)
	if err != nil {
		return err
	}
	if _, err := onnode.Feed(ctx, w.nodes, w.node, []byte(key.Text), "cryptsetup", "open", "--test-passphrase", "--key-file", "-", v.device); err != nil {
		return fmt.Errorf("its recovery key does not open it: %w", err)
	}
	w.say("enroll the TPM for " + v.label)
	if err := onnode.Exec(ctx, w.nodes, w.node, "systemd-cryptenroll", "--wipe-slot=tpm2", v.device); err != nil {
		return err
	}
	_, err = onnode.Feed(ctx, w.nodes, w.node, []byte(key.Text), "sh", "-c", enrollScript, "sh", "--tpm2-device=auto", "--tpm2-pcrs=7", v.device)
	return err
}

// format makes the file system in a volume that was unlocked and has none yet.
func (w *work) format(ctx context.Context, v volume) error {
	h, err := w.header(ctx, v.device)
	if err != nil || h.subsystem != fresh {
		return err
	}
	mounted, err := onnode.Do(ctx, w.nodes, w.node, "cat", "/proc/self/mounts")
	if err != nil {
		return err
	}
	if at, is := hostfile.MountAt(string(mounted), v.mount); is {
		return errkind.New(errkind.Refused, "%s is mounted at %s", at.Source, v.mount)
	}
	w.say("make " + v.filesystem + " of " + v.label)
	if err := onnode.Exec(ctx, w.nodes, w.node, v.format()...); err != nil {
		return err
	}
	if err := onnode.Exec(ctx, w.nodes, w.node, "sync"); err != nil {
		return err
	}
	return onnode.Exec(ctx, w.nodes, w.node, "cryptsetup", "config", "--label", v.label, "--subsystem", ready, v.device)
}

// enter puts a line into a file of the node, in the place of another with the same field.
func (w *work) enter(ctx context.Context, name, line string, field int) error {
	text, err := w.read(ctx, name)
	if err != nil {
		return err
	}
	if !hasLine(text, line) {
		if err := onnode.Write(ctx, w.nodes, w.node, name, 0o644, []byte(withLine(text, line, field))); err != nil {
			return err
		}
	}
	return onnode.Exec(ctx, w.nodes, w.node, "systemctl", "daemon-reload")
}
