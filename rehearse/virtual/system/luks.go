// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/ironrail/ironrail/internal/hostfile"
	"github.com/ironrail/ironrail/rehearse/virtual/metal"
)

const (
	unlockUnit = "systemd-cryptsetup@"
	mapperDir  = "/dev/mapper/luks-"
	crypttab   = "etc/crypttab"
	fstabFile  = "etc/fstab"
)

// volumes are the LUKS2 volumes that are unlocked, with the devices that they lie on, by UUID.
type volumes struct {
	mu   sync.Mutex
	open map[string]string // guarded by mu
}

// lastWord is the last argument, a device.
func lastWord(c call) string { return c.Argv[len(c.Argv)-1] }

// option is the value that follows an option.
func option(c call, name string) string {
	if i := slices.Index(c.Argv, name); i >= 0 && i+1 < len(c.Argv) {
		return c.Argv[i+1]
	}
	return ""
}

// luks reads the volume on the device of a command; false where it says that there is none.
func (c call) luks(device string) (v metal.LUKS, ok bool) {
	if c.n.cfg.Volumes == nil {
		return v, false
	}
	v, content, err := c.n.cfg.Volumes.ReadLUKS(device)
	switch {
	case err != nil:
		_, _ = fmt.Fprintf(c.Err, "Device %s does not exist or access denied.\n", device)
	case content != "crypto_LUKS":
		_, _ = fmt.Fprintf(c.Err, "Device %s is not a valid LUKS device.\n", device)
	default:
		return v, true
	}
	return v, false
}

// runCryptsetup is cryptsetup(8): luksFormat, luksDump, config, and open that only tests.
func runCryptsetup(_ context.Context, c call) int {
	if len(c.Argv) < 3 {
		return c.fail("Argument <action> missing.")
	}
	device := lastWord(c)
	if c.Argv[1] == "luksFormat" {
		key, err := io.ReadAll(c.In)
		if _, _, there := c.n.cfg.Volumes.ReadLUKS(device); err != nil || there != nil || len(key) == 0 {
			return 4
		}
		if c.n.cfg.Volumes.WriteLUKS(device, metal.LUKS{UUID: option(c, "--uuid"), Label: option(c, "--label"), Subsystem: option(c, "--subsystem"), Key: sha256.Sum256(key)}) != nil {
			return 4
		}
		return 0
	}
	v, ok := c.luks(device)
	if !ok {
		return 1
	}
	switch c.Argv[1] {
	case "luksDump":
		c.dumpLUKS(v)
	case "config":
		v.Label, v.Subsystem = option(c, "--label"), option(c, "--subsystem")
		if c.n.cfg.Volumes.WriteLUKS(device, v) != nil {
			return 4
		}
	case "open":
		return c.openLUKS(v)
	default:
		return c.fail("Unknown action.")
	}
	return 0
}

// dumpLUKS prints a header, or its metadata as JSON.
func (c call) dumpLUKS(v metal.LUKS) {
	slots, tokens := map[string]any{}, map[string]any{}
	if v.Key != [sha256.Size]byte{} {
		slots["0"] = map[string]any{"type": "luks2"}
	}
	if v.Token != "" {
		slots["1"], tokens["0"] = map[string]any{"type": "luks2"}, map[string]any{"type": "systemd-tpm2", "keyslots": []string{"1"}, "tpm2-pcrs": []int{7}}
	}
	if slices.Contains(c.Argv, "--dump-json-metadata") {
		b, err := json.Marshal(map[string]any{"keyslots": slots, "tokens": tokens})
		if err == nil {
			c.print(string(b) + "\n")
		}
		return
	}
	c.print(fmt.Sprintf("LUKS header information\nVersion:       \t2\nUUID:          \t%s\nLabel:         \t%s\nSubsystem:     \t%s\n", v.UUID, v.Label, v.Subsystem))
}

// openLUKS tests a passphrase, or the TPM.
func (c call) openLUKS(v metal.LUKS) int {
	if !slices.Contains(c.Argv, "--test-passphrase") {
		return c.fail("Only --test-passphrase is simulated.")
	}
	if slices.Contains(c.Argv, "--token-only") {
		if v.Token == "" || v.Token != c.n.cfg.Volumes.TPM() {
			return 1
		}
		return 0
	}
	if key, err := io.ReadAll(c.In); err != nil || sha256.Sum256(key) != v.Key {
		return c.failWith(2, "No key available with this passphrase.")
	}
	return 0
}

// failWith is fail with another status.
func (c call) failWith(status int, text string) int {
	_, _ = fmt.Fprintln(c.Err, text)
	return status
}

// runCryptenroll is systemd-cryptenroll(1) 252: one that is enrolled with the same PCRs stays.
func runCryptenroll(_ context.Context, c call) int {
	device := lastWord(c)
	v, ok := c.luks(device)
	if !ok {
		return 1
	}
	tpm := c.n.cfg.Volumes.TPM()
	switch {
	case slices.Contains(c.Argv, "--wipe-slot=tpm2"):
		v.Token = ""
	case tpm == "":
		return c.failWith(1, "TPM2 support is not available on this system.")
	case sha256.Sum256([]byte(c.Env["PASSWORD"])) != v.Key:
		return c.failWith(1, "Password not correct.")
	case v.Token == "":
		v.Token = tpm
	}
	if c.n.cfg.Volumes.WriteLUKS(device, v) != nil {
		return 1
	}
	return 0
}

// runWipefs is wipefs(8) that only lists.
func runWipefs(_ context.Context, c call) int {
	if c.n.cfg.Volumes == nil || !slices.Contains(c.Argv, "--no-act") {
		return c.fail("only --no-act is simulated")
	}
	_, content, err := c.n.cfg.Volumes.ReadLUKS(lastWord(c))
	if err != nil {
		return c.fail("error: " + lastWord(c) + ": probing initialization failed: No such file or directory")
	}
	if content != "" {
		c.print("# offset,uuid,label,type\n0x0,,," + content + "\n")
	}
	return 0
}

// runMkfs is mkfs.ext4(8) and mkfs.xfs(8) of a volume that is unlocked.
func runMkfs(_ context.Context, c call) int {
	device, ok := c.n.unlockedDevice(lastWord(c))
	if !ok {
		return c.fail(lastWord(c) + ": No such file or directory")
	}
	v, ok := c.luks(device)
	if !ok {
		return 1
	}
	v.Filesystem = strings.TrimPrefix(c.Argv[0], "mkfs.")
	if c.n.cfg.Volumes.WriteLUKS(device, v) != nil {
		return 1
	}
	return 0
}

// unlockedDevice is the device that an unlocked volume lies on.
func (n *node) unlockedDevice(mapped string) (string, bool) {
	n.unlocked.mu.Lock()
	defer n.unlocked.mu.Unlock()
	device, ok := n.unlocked.open[strings.TrimPrefix(mapped, mapperDir)]
	return device, ok && strings.HasPrefix(mapped, mapperDir)
}

// unlock is systemd-cryptsetup of a volume by its unit, and reports whether the TPM unlocks it.
func (n *node) unlock(unit string) bool {
	name := strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(unit, unlockUnit), ".service"), `\x2d`, "-")
	said := "Unit " + unit + " not found."
	b, _ := n.tree.ReadFile(crypttab) // none: there is no such unit
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) != 4 || f[0] != name || !strings.HasPrefix(f[1], "UUID=") || n.cfg.Volumes == nil {
			continue
		}
		uuid := strings.TrimPrefix(f[1], "UUID=")
		device := "/dev/disk/by-uuid/" + uuid
		v, _, err := n.cfg.Volumes.ReadLUKS(device)
		if err == nil && v.Token != "" && v.Token == n.cfg.Volumes.TPM() && strings.Contains(f[3], "tpm2-device=auto") {
			n.unlocked.mu.Lock()
			defer n.unlocked.mu.Unlock()
			if n.unlocked.open == nil {
				n.unlocked.open = map[string]string{}
			}
			n.unlocked.open[uuid] = device
			n.units.end(unit, true)
			return true
		}
		said = "Failed to unseal secret using TPM2: State not recoverable\nPassword querying disabled via 'headless' option."
	}
	n.tree.set("run/log/"+unit, said+"\n")
	n.units.end(unit, false)
	return false
}

// unlockAtStart unlocks the volumes of crypttab.
func (n *node) unlockAtStart() {
	b, _ := n.tree.ReadFile(crypttab) // none: there are no volumes
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 3 && !strings.HasPrefix(f[0], "#") {
			n.unlock(unlockUnit + strings.ReplaceAll(f[0], "-", `\x2d`) + ".service")
		}
	}
}

// fstabUnit is what systemd makes of a line of fstab.
func (n *node) fstabUnit(unit string) (what, where, kind, options string, ok bool) {
	b, _ := n.tree.ReadFile(fstabFile) // none: there is no such unit
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 3 && strings.HasPrefix(f[1], "/") && hostfile.MountUnitName(f[1]) == unit {
			return f[0], f[1], f[2], f[3], true
		}
	}
	return "", "", "", "", false
}

// mountVolumes mounts the volumes that fstab names.
func (n *node) mountVolumes(ctx context.Context) {
	b, _ := n.tree.ReadFile(fstabFile) // none: nothing is mounted
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 3 && strings.HasPrefix(f[0], mapperDir) {
			n.mount(ctx, hostfile.MountUnitName(f[1]), f[0], f[1], f[2], f[3])
		}
	}
}

// maps reports whether a source can be mounted as a file system: of a volume, where it is unlocked
// and has that file system.
func (n *node) maps(what, kind string) bool {
	if !strings.HasPrefix(what, mapperDir) {
		return true
	}
	device, ok := n.unlockedDevice(what)
	if !ok {
		return false
	}
	v, _, err := n.cfg.Volumes.ReadLUKS(device)
	return err == nil && v.Filesystem == kind
}
