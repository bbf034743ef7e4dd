// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/hostfile"
	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/provision/keys"
)

// The subsystem of a LUKS2 header says how far ironrail has come with a volume: what is inside
// one that says fresh was never mounted, and is made again.
const (
	fresh = "ironrail-new"
	ready = "ironrail"
)

// pcrFile is what the kernel shows of PCR 7 (Linux 5.12 and later).
const pcrFile = "/sys/class/tpm/tpm0/pcr-sha256/7"

// work is one node that runs.
type work struct {
	nodes    onnode.Nodes
	node     string
	recovery keys.Recovery
	volumes  []volume
	known    []Record // as the state has them
	pcr7     string   // as it is now, once it was read
	say      func(string)
}

// problem is what is wrong with a volume, or with the TPM.
type problem struct {
	volume             volume
	part, text, action string
}

func texts(list []problem) (out []string) {
	for _, p := range list {
		out = append(out, p.text)
	}
	return out
}

// joined puts volumes together that are locked for one reason, so that a line that is cut names them all.
func joined(texts []string) (out []string) {
	of := map[string][]string{} // volumes by the reason
	for _, text := range texts {
		if name, why, is := strings.Cut(text, isLocked); is {
			of[why] = append(of[why], name)
		}
	}
	for _, text := range texts {
		_, why, is := strings.Cut(text, isLocked)
		switch names := of[why]; {
		case !is || len(names) == 1:
			out = append(out, text)
		case len(names) > 1:
			last := len(names) - 1
			out = append(out, strings.Join(names[:last], ", ")+" and "+names[last]+" are locked: "+why)
			of[why] = nil
		}
	}
	return out
}

// isLocked stands between a volume and why it is locked.
const isLocked = " is locked: "

func (w *work) names() string {
	var list []string
	for _, v := range w.volumes {
		list = append(list, fmt.Sprintf("%s (%s)", v.label, v.mount))
	}
	return strings.Join(list, ", ")
}

// records are the volumes with PCR 7 as it is now: the TPM unlocks them by it.
func (w *work) records() (list []Record) {
	for _, v := range w.volumes {
		list = append(list, Record{v.label, v.uuid, w.pcr7})
	}
	return list
}

// header is what a device has of LUKS2.
type header struct {
	uuid      string // "": it is no LUKS2 volume
	subsystem string
	slots     int  // keys
	token     bool // a TPM is enrolled, with PCR 7 and no other
}

// header reads the LUKS2 header of a device.
func (w *work) header(ctx context.Context, device string) (h header, err error) {
	text, err := w.run(ctx, "cryptsetup", "luksDump", device)
	if err != nil || text.Exit != 0 {
		return h, err
	}
	for line := range strings.Lines(string(text.Stdout)) {
		switch key, value, _ := strings.Cut(line, ":"); key {
		case "UUID":
			h.uuid = strings.TrimSpace(value)
		case "Subsystem":
			h.subsystem = strings.TrimSpace(value)
		}
	}
	out, err := onnode.Do(ctx, w.nodes, w.node, "cryptsetup", "luksDump", "--dump-json-metadata", device)
	if err != nil {
		return h, err
	}
	var metadata struct {
		Keyslots map[string]json.RawMessage `json:"keyslots"`
		Tokens   map[string]struct {
			Type string `json:"type"`
			PCRs []int  `json:"tpm2-pcrs"`
		} `json:"tokens"`
	}
	if err := json.Unmarshal(out, &metadata); err != nil {
		return h, errkind.New(errkind.Corrupt, "node %s: metadata of LUKS2 volume %s: %w", w.node, device, err).Do("Look at the volume with `cryptsetup luksDump`.")
	}
	h.slots = len(metadata.Keyslots)
	for _, t := range metadata.Tokens {
		h.token = h.token || t.Type == "systemd-tpm2" && slices.Equal(t.PCRs, []int{7})
	}
	return h, nil
}

// content is what a device holds beside a LUKS2 volume, as wipefs(8) names it; "": it is blank.
func (w *work) content(ctx context.Context, device string) (string, error) {
	out, err := onnode.Do(ctx, w.nodes, w.node, "wipefs", "--no-act", "--parsable", device)
	if err != nil {
		return "", fmt.Errorf("look at %s: %w", device, err)
	}
	var kinds []string
	for line := range strings.Lines(string(out)) { // OFFSET,UUID,LABEL,TYPE
		if f := strings.Split(strings.TrimSpace(line), ","); !strings.HasPrefix(line, "#") && len(f) > 1 && !slices.Contains(kinds, f[len(f)-1]) {
			kinds = append(kinds, f[len(f)-1])
		}
	}
	return strings.Join(kinds, ", "), nil
}

// unlocks reports whether the TPM opens a volume by what is measured now, as at a start of the
// system.
func (w *work) unlocks(ctx context.Context, v volume) (bool, error) {
	out, err := w.run(ctx, "cryptsetup", "open", "--test-passphrase", "--token-only", "--token-type", "systemd-tpm2", v.device)
	return err == nil && out.Exit == 0, err
}

// digest is a value of the SHA-256 bank.
var digest = lazyregexp.New(`^[0-9a-f]{64}$`)

// readPCR reads PCR 7; "" where the kernel does not show it.
func (w *work) readPCR(ctx context.Context) error {
	out, err := w.run(ctx, "cat", pcrFile)
	w.pcr7 = ""
	if text := strings.ToLower(strings.TrimSpace(string(out.Stdout))); err == nil && out.Exit == 0 && digest.MatchString(text) {
		w.pcr7 = text
	}
	return err
}

// obstacles finds what nothing is done against: a TPM that nothing is measured into, a device
// with something else on it, and files that a volume would be mounted over.
func (w *work) obstacles(ctx context.Context) (wrong []problem, err error) {
	if err := w.readPCR(ctx); err != nil {
		return nil, err
	}
	if w.pcr7 == "" || strings.Trim(w.pcr7, "0") == "" || strings.Trim(w.pcr7, "f") == "" {
		return []problem{{part: "TPM", text: fmt.Sprintf("PCR 7 of the TPM reads %q: the firmware measures nothing into it, and every system that is started on this node could unlock its volumes", w.pcr7),
			action: "Look in the firmware's setup whether the TPM is of version 2.0, on, and has the PCR bank SHA-256. Then run `ironrail apply`."}}, nil
	}
	mounted, err := onnode.Do(ctx, w.nodes, w.node, "cat", "/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	for _, v := range w.volumes {
		text, err := w.obstacle(ctx, v)
		if err != nil {
			return nil, err
		}
		if text != "" {
			wrong = append(wrong, problem{v, "volume " + v.label, text, "Nothing was erased. Look whether the data is needed (a copy of the header, if you have one, gives it back: `cryptsetup luksHeaderRestore`); `ironrail rebuild` lays the disks out anew."})
			continue
		}
		if _, is := hostfile.MountAt(string(mounted), v.mount); is {
			continue
		}
		out, err := w.run(ctx, "ls", "-A", "--", v.mount) // another status: there is no such folder
		if err != nil {
			return nil, err
		}
		if first := lastLine(out.Stdout); first != "" {
			wrong = append(wrong, problem{v, "volume " + v.label, fmt.Sprintf("%s is not empty (%s is there): what is in it would be hidden", v.mount, first), "Move away what is there. Then run `ironrail apply`."})
		}
	}
	return wrong, nil
}

// obstacle says what on the device of a volume is neither blank nor that volume, or why it
// cannot be opened.
func (w *work) obstacle(ctx context.Context, v volume) (string, error) {
	h, err := w.header(ctx, v.device)
	if err != nil {
		return "", err
	}
	switch {
	case h.uuid == v.uuid && h.slots > 0:
		_, err := w.recovery.Find(v.uuid)
		return "", err
	case h.uuid == v.uuid && h.subsystem == fresh:
		return "", nil // luksFormat was cut off: nobody can read it
	case h.uuid == v.uuid:
		return fmt.Sprintf("LUKS2 volume %q of %s has no key any more: they were erased after its file system was made", h.uuid, v.label), nil
	case h.uuid != "":
		return fmt.Sprintf("%s holds LUKS2 volume %q, and was made for %s, UUID %s", v.device, h.uuid, v.label, v.uuid), nil
	}
	is, err := w.content(ctx, v.device)
	switch {
	case err != nil:
		return "", err
	case is != "":
		return fmt.Sprintf("%s was left blank for %s, and holds %q", v.device, v.label, is), nil
	case slices.ContainsFunc(w.known, func(r Record) bool { return r.UUID == v.uuid }):
		return fmt.Sprintf("%s has lost the header of LUKS2 volume %q, which was made for %s", v.device, v.uuid, v.label), nil
	}
	return "", nil
}

// compare says what of the volumes is not as it is to be. An error is a node that cannot be
// asked.
func (w *work) compare(ctx context.Context) (wrong []problem, err error) {
	if err := w.readPCR(ctx); err != nil {
		return nil, err
	}
	mounted, err := onnode.Do(ctx, w.nodes, w.node, "cat", "/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, name := range []string{crypttab, fstab} {
		if files[name], err = w.read(ctx, name); err != nil {
			return nil, err
		}
	}
	for _, v := range w.volumes {
		found, err := w.compareVolume(ctx, v, string(mounted), files)
		if err != nil {
			return nil, err
		}
		wrong = append(wrong, found...)
	}
	return wrong, nil
}

// compareVolume says what is wrong with one volume, given what is mounted and the text of files.
func (w *work) compareVolume(ctx context.Context, v volume, mounted string, files map[string]string) (wrong []problem, err error) {
	const again = "`ironrail apply` unlocks it by its recovery key, and enrolls the TPM again. First find out why the node starts in another way than before."
	add := func(part, action, format string, args ...any) {
		wrong = append(wrong, problem{v, part, fmt.Sprintf(format, args...), action})
	}
	h, err := w.header(ctx, v.device)
	if err != nil {
		return nil, err
	}
	part := "volume " + v.label
	if h.uuid != v.uuid {
		add(part, "`ironrail apply` encrypts it where it is blank.", "%s is not encrypted: %s has no LUKS2 volume %s", v.label, v.device, v.uuid)
		return wrong, nil
	}
	opens, err := w.unlocks(ctx, v)
	if err != nil {
		return nil, err
	}
	why := ""
	switch {
	case !h.token:
		why = "no TPM is enrolled with PCR 7"
	case !opens:
		why = w.why(v)
	}
	switch at, is := hostfile.MountAt(mounted, v.mount); {
	case why != "" && is:
		add("TPM", again, "the TPM does not unlock %s: %s", v.label, why)
	case why != "":
		add("TPM", again, "%s"+isLocked+"%s", v.label, why)
	case !is:
		add(part, "`ironrail apply` mounts it.", "%s is not mounted at %s", v.label, v.mount)
	case at.Source != v.mapped():
		add(part, "Look what has mounted it. Then run `ironrail apply`.", "at %s %q is mounted, not %s", v.mount, at.Source, v.mapped())
	}
	for _, f := range [][2]string{{crypttab, v.crypttabLine()}, {fstab, v.fstabLine()}} {
		if !hasLine(files[f[0]], f[1]) {
			add(part, "`ironrail apply` writes it.", "%s has no line %q", f[0], f[1])
		}
	}
	if h.subsystem != ready {
		add(part, "`ironrail apply` makes it.", "the file system of %s was not made to its end", v.label)
	}
	return wrong, nil
}

// why is the likely reason for a TPM that does not unlock a volume, by PCR 7 as it was when it
// was enrolled.
func (w *work) why(v volume) string {
	i := slices.IndexFunc(w.known, func(r Record) bool { return r.UUID == v.uuid })
	switch {
	case i < 0 || w.known[i].PCR7 == "" || w.pcr7 == "":
		return "PCR 7 has changed, or the TPM was cleared or exchanged"
	case w.known[i].PCR7 != w.pcr7:
		return fmt.Sprintf("PCR 7 is %.16s…, and was %.16s… when enrolled: Secure Boot, its keys (db, dbx) or the loader (shim) were changed", w.pcr7, w.known[i].PCR7)
	}
	return "PCR 7 is as when enrolled: losses of power have locked the TPM for a while, or the TPM was cleared or exchanged"
}

// explain adds to each volume that is locked or not mounted what its units said last.
func (w *work) explain(ctx context.Context, wrong []problem) error {
	for i, p := range wrong {
		if p.volume.uuid == "" || !strings.Contains(p.text, "is not mounted") && !strings.Contains(p.text, "is locked") {
			continue
		}
		for _, unit := range []string{p.volume.unlockUnit(), p.volume.mountUnit()} {
			out, err := w.run(ctx, "journalctl", "--no-pager", "--quiet", "--boot", "--lines=20", "--output=cat", "--unit="+unit)
			if err != nil {
				return err
			}
			for line := range strings.Lines(string(out.Stdout)) {
				if line = strings.TrimSpace(line); strings.Contains(line, "ailed") && !strings.Contains(line, ".service") && !strings.Contains(line, ".mount") {
					wrong[i].text = p.text + ": " + line
				}
			}
		}
	}
	return nil
}

func (w *work) run(ctx context.Context, argv ...string) (onnode.Output, error) {
	out, err := w.nodes.Run(ctx, w.node, onnode.Command{Argv: argv})
	if err != nil {
		return out, fmt.Errorf("node %s: %s: %w", w.node, argv[0], err)
	}
	return out, nil
}

// read reads a file of the node; "" where there is none. One that is there and cannot be read is
// an error: what is written in its place would lose the rest of it.
func (w *work) read(ctx context.Context, name string) (string, error) {
	out, err := w.run(ctx, "cat", "--", name)
	if err != nil || out.Exit == 0 {
		return string(out.Stdout), err
	}
	if err := onnode.Exec(ctx, w.nodes, w.node, "test", "!", "-e", name); err != nil {
		return "", errkind.New(errkind.Invalid, "node %s: %s is there and cannot be read: %s", w.node, name, lastLine(out.Stderr)).Do("Read it by hand on the node, then run `ironrail apply`.")
	}
	return "", nil
}

// lastLine is the last line that says something.
func lastLine(text []byte) string {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.TrimSpace(lines[len(lines)-1]))
}
