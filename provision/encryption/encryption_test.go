// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/keys"
)

const (
	luks   = "6c616230-0000-4000-8000-000000000001"
	part   = "6c616230-0000-4000-8000-000000000002"
	other  = "6c616230-0000-4000-8000-000000000003"
	device = "/dev/disk/by-partuuid/" + part
	boot   = "65caf8dd1e0ea7a6347b635d2b379c93b9a1351edc2afc3ecda700e534eb3068"
)

// machine is a node with one partition and a TPM, of which the words and the exit statuses of
// cryptsetup 2.6, systemd-cryptenroll 252 and wipefs are modelled.
type machine struct {
	onnodetest.Nodes
	content           string // of the partition, as wipefs names it
	uuid, subsystem   string // of its LUKS2 volume
	key               string // its recovery key; "": it has no key slot
	token             string // what the TPM sealed it by; "": none is enrolled
	seed, pcr         string // of the TPM
	open, fs, mounted bool
	fail              string // a program that fails
	unread            string // a file that is there and cannot be read
	files             map[string]string
	erased            int // times that something was made on the partition
}

func newMachine() *machine {
	m := &machine{seed: "tpm1", pcr: boot, files: map[string]string{"/scratch": ""}}
	m.Rules = []onnodetest.Rule{m.answer}
	return m
}

func (m *machine) answer(_ context.Context, c onnodetest.Call) (out onnode.Output, _ error, known bool) {
	line, last := c.Line(), c.Argv[len(c.Argv)-1]
	fails := func(bad bool) {
		if bad {
			out.Exit = 1
		}
	}
	if c.Argv[0] == m.fail {
		return onnode.Output{Exit: 1, Stderr: []byte("cut off\n")}, nil, true
	}
	switch c.Argv[0] {
	case "cat":
		text := map[string]string{pcrFile: strings.ToUpper(m.pcr) + "\n", "/proc/self/mounts": "/dev/vda2 / ext4 rw 0 0\n"}[last]
		if m.mounted && last == "/proc/self/mounts" {
			text += "/dev/mapper/luks-" + luks + " /scratch xfs rw 0 0\n"
		}
		if b, ok := m.File("n1", last); ok {
			text = string(b)
		}
		fails(text == "" || last == m.unread)
		out.Stdout = []byte(text)
	case "test":
		_, is := m.File("n1", last)
		fails(is)
	case "ls":
		out.Stdout = []byte(m.files[last])
	case "wipefs":
		if m.uuid != "" {
			m.content = "crypto_LUKS"
		}
		if m.content != "" {
			out.Stdout = []byte("0x0,,," + m.content + "\n0x1000,,," + m.content + "\n")
		}
	case "cryptsetup":
		m.cryptsetup(c, &out)
	case "systemd-cryptenroll":
		m.token = ""
	case "sh":
		if c.Argv[2] != enrollScript {
			return out, nil, false
		}
		fails(string(c.Stdin) != m.key)
		if m.token == "" { // else nothing is done
			m.token = m.seed + m.pcr
		}
	case "systemctl":
		switch {
		case strings.Contains(line, `start systemd-cryptsetup@luks\x2d`):
			crypttab, _ := m.File("n1", crypttab)
			m.open = m.token == m.seed+m.pcr && strings.Contains(string(crypttab), "luks-"+luks+" UUID="+luks+" none luks,tpm2-device=auto")
			fails(!m.open)
		case strings.Contains(line, "start scratch.mount"):
			fstab, _ := m.File("n1", fstab)
			m.mounted = m.open && m.fs && strings.Contains(string(fstab), "/dev/mapper/luks-"+luks+" /scratch xfs defaults,nofail,")
			fails(!m.mounted)
		}
	case "mkfs.xfs":
		fails(!m.open)
		m.fs, m.erased = m.open, m.erased+1
	case "mkdir", "sync":
	case "journalctl":
		out.Stdout = []byte("Starting...\nFailed to unseal secret using TPM2: State not recoverable\n")
	default:
		return out, nil, false
	}
	return out, nil, true
}

func (m *machine) cryptsetup(c onnodetest.Call, out *onnode.Output) {
	line := c.Line()
	opens := m.key != "" && string(c.Stdin) == m.key
	switch {
	case strings.Contains(line, "luksDump") && m.uuid == "":
		out.Exit, out.Stderr = 1, []byte("Device is not a valid LUKS device.\n")
	case strings.Contains(line, "--dump-json-metadata"):
		slots, tokens := map[string]any{}, map[string]any{}
		if m.key != "" {
			slots["0"] = map[string]any{}
		}
		if m.token != "" {
			slots["1"], tokens["0"] = map[string]any{}, map[string]any{"type": "systemd-tpm2", "tpm2-pcrs": []int{7}}
		}
		out.Stdout, _ = json.Marshal(map[string]any{"keyslots": slots, "tokens": tokens})
	case strings.Contains(line, "luksDump"):
		out.Stdout = fmt.Appendf(nil, "LUKS header information\nVersion:       \t2\nUUID:          \t%s\nLabel:         \tscratch\nSubsystem:     \t%s\n", m.uuid, m.subsystem)
	case strings.Contains(line, "luksFormat"):
		m.uuid, m.subsystem, m.key, m.token, m.erased = luks, fresh, string(c.Stdin), "", m.erased+1
	case strings.Contains(line, "--token-only"):
		if m.token == "" || m.token != m.seed+m.pcr {
			out.Exit = 1
		}
	case strings.Contains(line, "--key-file"):
		if !opens {
			out.Exit, out.Stderr = 2, []byte("No key available with this passphrase.\n")
		}
	case strings.Contains(line, "config"):
		m.subsystem = c.Argv[5]
	}
}

// restart is what a start of the system does.
func (m *machine) restart() {
	m.open = m.token == m.seed+m.pcr
	m.mounted = m.open && m.fs
}

func site() *inventory.Inventory {
	layout := &inventory.DiskLayout{Name: "os", RAID: -1, Data: []inventory.FileSystem{{Name: "plain"}, {Name: "scratch", Mount: "/scratch", Filesystem: "xfs", Encryption: inventory.EncryptionTPM2}}}
	image := &inventory.Image{Block: inventory.Block{Kind: "debian", Name: "os"}}
	return &inventory.Inventory{Nodes: []*inventory.Node{{Name: "n1", Image: image, Disks: layout}, {Name: "n2", Image: image, Disks: &inventory.DiskLayout{}}}}
}

// layout is how the disks of n1 were made.
func layout() *wire.Layout {
	return &wire.Layout{
		Disks:   []wire.LayoutDisk{{Partitions: []wire.LayoutPartition{{Number: 3, GUID: part}}}},
		Volumes: []wire.Volume{{Use: wire.VolumeData, Name: "scratch", Label: "scratch", Mount: "/scratch", Filesystem: "xfs", UUID: luks, RAID: -1, Encryption: wire.EncryptionTPM2, Members: []wire.Member{{Partition: 3}}}},
	}
}

// world is a stage with a node that was installed.
type world struct {
	*machine
	run *onnodetest.Run
	dir string // of keys
}

func newWorld(t *testing.T) *world {
	w := &world{newMachine(), onnodetest.NewRun(subject.OfNode("n1")), t.TempDir()}
	f, err := install.WriteFact.New(subject.OfNode("n1"), install.Written{Result: wire.WriteResult{Layout: layout()}}, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.run.Learn(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) step() plan.Step { return plan.Step{ID: StepID("n1"), Subject: subject.OfNode("n1")} }

func (w *world) stage() *Stage { return New(site(), w.machine, keys.RecoveryIn(w.dir), after) }

// after are the needs of what follows the boot of a node.
func after(n *inventory.Node) []plan.Need {
	return []plan.Need{{Step: plan.StepID(n.Name + "/install.boot"), On: plan.Success, Triggers: true}}
}

func (w *world) apply(t *testing.T) error { return w.stage().Apply(t.Context(), w.run, w.step()) }

func (w *world) observe(t *testing.T) stage.Observation {
	t.Helper()
	o, err := w.stage().Observe(t.Context(), w.run, w.step())
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// A blank partition becomes a volume that is unlocked and mounted, and stays it: by another run, a
// restart, a TPM that was cleared and PCR 7 that changed.
func TestEncrypt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if o := w.observe(t); o.State != stage.Differs || !strings.Contains(o.Evidence, "scratch is not encrypted") {
		t.Errorf("before: %+v", o)
	}
	if err := w.apply(t); err != nil {
		t.Fatal(err)
	}
	conforms := func(when string) {
		t.Helper()
		if o := w.observe(t); o.State != stage.Conforms || w.subsystem != ready || w.erased != 2 {
			t.Errorf("%s: %+v, erased %d times", when, o, w.erased)
		}
	}
	conforms("after")
	w.restart()
	conforms("restarted")
	for _, c := range []struct {
		spoil func()
		want  string
	}{
		{func() { w.seed = "tpm2" }, "scratch is locked: PCR 7 is as when enrolled: losses of power have locked the TPM for a while, or the TPM was cleared or exchanged"},
		{func() { w.pcr = strings.Repeat("ab", 32) }, "scratch is locked: PCR 7 is abababababababab…, and was 65caf8dd1e0ea7a6… when enrolled: Secure Boot, its keys (db, dbx) or the loader (shim) were changed"},
		{func() { w.token = "" }, "scratch is locked: no TPM is enrolled with PCR 7"},
		{func() { w.Put("n1", crypttab, []byte("# by hand\n")) }, `/etc/crypttab has no line "luks-` + luks},
		{func() { w.Put("n1", fstab, []byte("LABEL=x /scratch xfs defaults 0 0\n")) }, `/etc/fstab has no line "/dev/mapper/luks-` + luks},
	} {
		c.spoil()
		w.restart()
		if o := w.observe(t); o.State != stage.Differs || !strings.Contains(o.Evidence, c.want) {
			t.Errorf("%+v, want %q", o, c.want)
		}
		if err := w.apply(t); err != nil {
			t.Errorf("%s: %v", c.want, err)
		}
		w.restart()
		conforms(c.want)
	}
	if b, _ := w.File("n1", fstab); string(b) != (volume{mount: "/scratch", filesystem: "xfs", uuid: luks}).fstabLine()+"\n" {
		t.Errorf("fstab: %q", b)
	}
}

// The recovery key goes to the node by standard input alone, and into nothing that is recorded.
func TestSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.apply(t); err != nil {
		t.Fatal(err)
	}
	k, err := keys.RecoveryIn(w.dir).Find(luks)
	if err != nil || k.Node != "n1" || k.Volume != "scratch" || len(k.Text) != 71 || k.Text != w.key {
		t.Fatalf("%+v, %v", k, err)
	}
	var all []string
	for _, c := range w.Calls("") {
		all = append(all, c.Argv...)
	}
	facts, _ := w.run.Fact(volumesFact.Of(subject.OfNode("n1")))
	shown := fmt.Sprint(all, w.run.Events, w.run.Effects, w.run.Evidence, string(facts.Value))
	if strings.Contains(shown, k.Text) || !strings.Contains(shown, boot) {
		t.Errorf("shown: %s", shown)
	}
	err = os.WriteFile(w.dir+"/recovery/"+luks+".key", []byte("torn"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	w.token = ""
	if err := w.apply(t); errkind.Of(err) != errkind.Corrupt || w.erased != 2 {
		t.Errorf("a key that is torn: %v", err)
	}
}

// Nothing is made on a device that holds anything else, nor bound to a PCR that says nothing.
func TestObstacles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*world)
		want  string
	}{
		"a file system":         {func(w *world) { w.content = "ext4" }, device + ` was left blank for scratch, and holds "ext4"`},
		"another volume":        {func(w *world) { w.uuid, w.key = other, "k" }, device + ` holds LUKS2 volume "` + other + `", and was made for scratch`},
		"a key that is lost":    {func(w *world) { w.uuid, w.key, w.subsystem = luks, "k", ready }, "there is no recovery key"},
		"a key of another":      {func(w *world) { w.uuid, w.key, w.subsystem = luks, "k", ready; w.makeKey() }, "its recovery key does not open it"},
		"keys that were erased": {func(w *world) { w.uuid, w.subsystem = luks, ready }, `LUKS2 volume "` + luks + `" of scratch has no key any more`},
		"a header that is lost": {func(w *world) {
			f, _ := volumesFact.New(subject.OfNode("n1"), []Record{{Volume: "scratch", UUID: luks, PCR7: boot}}, "")
			_ = w.run.Learn(context.Background(), f)
		}, device + " has lost the header of LUKS2 volume"},
		"no measurements":    {func(w *world) { w.pcr = strings.Repeat("0", 64) }, "the firmware measures nothing into it"},
		"not a digest":       {func(w *world) { w.pcr = "\x1b[2J" }, `PCR 7 of the TPM reads ""`},
		"no bank of SHA-256": {func(w *world) { w.pcr = "" }, `PCR 7 of the TPM reads ""`},
		"files in the way":   {func(w *world) { w.files["/scratch"] = "results\n" }, "/scratch is not empty (results is there)"},
		"no place for it": {func(w *world) {
			f, _ := install.WriteFact.New(subject.OfNode("n1"), install.Written{}, "")
			_ = w.run.Learn(context.Background(), f)
		}, "was installed without a disk layout of its own"},
	} {
		w := newWorld(t)
		c.spoil(w)
		err := w.apply(t)
		if err == nil || !strings.Contains(err.Error(), c.want) || w.erased != 0 {
			t.Errorf("%s: %v, erased %d times", name, err, w.erased)
		}
	}
}

func (w *world) makeKey() { _, _ = keys.RecoveryIn(w.dir).Make("n1", "scratch", luks) }

// A run that is cut off anywhere is ended by the next one, and nothing that was mounted is made
// again.
func TestResume(t *testing.T) {
	t.Parallel()
	for _, fail := range []string{"wipefs", "cryptsetup", "systemd-cryptenroll", "sh", "systemctl", "mkfs.xfs", "sync", "mkdir"} {
		w := newWorld(t)
		w.fail = fail
		if err := w.apply(t); err == nil {
			t.Errorf("%s fails, and the step does not", fail)
		}
		w.fail = ""
		if err := w.apply(t); err != nil {
			t.Errorf("after %s failed: %v", fail, err)
		}
		if o := w.observe(t); o.State != stage.Conforms {
			t.Errorf("after %s failed: %+v", fail, o)
		}
	}
	w := newWorld(t) // luksFormat was cut off before the first key
	w.uuid, w.subsystem = luks, fresh
	if err := w.apply(t); err != nil || w.erased != 2 {
		t.Errorf("no key slot: %v", err)
	}
}

// A file that is there and cannot be read is left as it is: its other lines would be lost.
func TestUnread(t *testing.T) {
	t.Parallel()
	for _, name := range []string{crypttab, fstab} {
		w := newWorld(t)
		w.Put("n1", name, []byte("UUID=1 / ext4 defaults 0 1\n"))
		w.unread = name
		err := w.apply(t)
		if b, _ := w.File("n1", name); err == nil || !strings.Contains(err.Error(), name+" is there and cannot be read") || string(b) != "UUID=1 / ext4 defaults 0 1\n" {
			t.Errorf("%v, %q", err, b)
		}
	}
}

// A TPM that unlocks nothing after it was enrolled is a finding, with what systemd said.
func TestFinding(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	enroll := w.Rules[0]
	w.Rules[0] = func(ctx context.Context, c onnodetest.Call) (onnode.Output, error, bool) {
		out, err, known := enroll(ctx, c)
		if w.token != "" {
			w.token = "another"
		}
		return out, err, known
	}
	err := w.apply(t)
	if errkind.Of(err) != errkind.Mismatch || len(w.run.Findings) != 1 {
		t.Fatalf("%v, findings %+v", err, w.run.Findings)
	}
	f := w.run.Findings[0]
	if f.Suspects[0].Part != "TPM" || !strings.Contains(strings.Join(f.Evidence, ";"), "the TPM was cleared or exchanged: Failed to unseal secret using TPM2") || f.Action == "" {
		t.Errorf("%+v", f)
	}
}

// A restart that changes PCR 7 before the node is tested keeps it out, and no effect is begun.
func TestCheck(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.apply(t); err != nil {
		t.Fatal(err)
	}
	check := plan.Step{ID: checkID("n1"), Subject: subject.OfNode("n1")}
	w.restart()
	if err := w.stage().Apply(t.Context(), w.run, check); err != nil {
		t.Errorf("restarted: %v", err)
	}
	w.pcr = strings.Repeat("ab", 32)
	w.restart()
	effects := len(w.run.Effects)
	if err := w.stage().Apply(t.Context(), w.run, check); errkind.Of(err) != errkind.Mismatch || !strings.Contains(err.Error(), "scratch is locked: PCR 7 is abab") || len(w.run.Findings) != 1 || len(w.run.Effects) != effects {
		t.Errorf("PCR 7 changed: %v, findings %+v", err, w.run.Findings)
	}
	if o, err := w.stage().Observe(t.Context(), w.run, check); err != nil || o.State != stage.Conforms {
		t.Errorf("%+v, %v", o, err)
	}
}

// Devices are named by what the layout gave them.
func TestDeviceOf(t *testing.T) {
	t.Parallel()
	l := layout()
	for want, v := range map[string]wire.Volume{
		device: l.Volumes[0],
		"/dev/disk/by-id/md-uuid-6c616230:00004000:80000000:00000003": {RAID: 1, Array: other},
		"/dev/mapper/v--g-scratch":                                    {RAID: -1, Group: "v-g", Name: "scratch"},
	} {
		if got, err := deviceOf(*l, v); got != want || err != nil {
			t.Errorf("%s, want %s: %v", got, want, err)
		}
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	inv := site()
	steps, _ := New(inv, nil, keys.Recovery{}, after).Plan(onnodetest.NewRun())
	if len(steps) != 2 || steps[0].ID != "n1/encryption.volumes" || !strings.HasPrefix(steps[0].Title, "encrypt scratch (LUKS2)") || steps[0].Inputs[0].Value != "tpm2" || !steps[0].Inherited || steps[0].May.Has(plan.Erase) {
		t.Fatalf("%+v", steps)
	}
	accept := func(node string) plan.StepID { return plan.StepID(node + "/validate.accept") }
	if check := steps[1]; check.ID != "n1/encryption.unlocked" || check.Action != plan.Read || check.May != 0 || len(check.Needs) != 2 || check.Needs[1].Step != "n1/encryption.volumes" {
		t.Errorf("%+v", check)
	}
	after := after(inv.Nodes[0])
	woven := Weave(inv, []plan.Step{{ID: "n1/drivers.x", Stage: "drivers", Needs: after}, {ID: "n1/host.settings", Stage: "host", Needs: after}, {ID: "n1/validate.accept"}, {ID: "n2/validate.accept"}}, "host", accept)
	has := func(i int, n plan.Need) bool { return slices.Contains(woven[i].Needs, n) }
	if !has(0, plan.Need{Step: "n1/encryption.volumes", On: plan.Success}) || len(woven[1].Needs) != 1 || !has(2, plan.Need{Step: "n1/encryption.unlocked", On: plan.Success, Triggers: true}) || len(woven[3].Needs) != 0 {
		t.Errorf("%+v", woven)
	}
}

// A folder is not made below a mount that did not come up: the next run would find it in the way.
func TestBelowLocked(t *testing.T) {
	t.Parallel()
	for locked, want := range map[string]int{"": 2, "start systemd-cryptsetup@": 0, "start scratch.mount": 1} {
		nodes := &onnodetest.Nodes{}
		nodes.Rules = []onnodetest.Rule{func(_ context.Context, c onnodetest.Call) (out onnode.Output, _ error, known bool) {
			uuid := luks
			if c.Argv[len(c.Argv)-1] == "/dev/b" {
				uuid = other
			}
			switch line := c.Line(); {
			case strings.Contains(line, "--dump-json-metadata"):
				out.Stdout = []byte(`{"keyslots":{"0":{},"1":{}},"tokens":{"0":{"type":"systemd-tpm2","tpm2-pcrs":[7]}}}`)
			case strings.Contains(line, "luksDump"):
				out.Stdout = []byte("UUID: " + uuid + "\nSubsystem: " + ready + "\n")
			case locked != "" && strings.Contains(line, locked):
				out.Exit = 1
			}
			return out, nil, c.Argv[0] != "sh"
		}}
		w := &work{nodes: nodes, node: "n1", say: func(string) {}, volumes: []volume{{label: "a", mount: "/scratch", uuid: luks, device: "/dev/a"}, {label: "b", mount: "/scratch/deep", uuid: other, device: "/dev/b"}}}
		err := w.apply(t.Context())
		if made := len(nodes.Calls("mkdir -p -- /scratch")); err != nil || made != want {
			t.Errorf("%q fails: %v, %d folders, want %d", locked, err, made, want)
		}
	}
}

// TestJoined: volumes that are locked for one reason are one text, others stay as they are.
func TestJoined(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ texts, want string }{
		{"home is locked: PCR|scratch is locked: PCR", "home and scratch are locked: PCR"},
		{"a is locked: PCR|b is not mounted|c is locked: PCR|d is locked: PCR", "a, c and d are locked: PCR|b is not mounted"},
		{"a is locked: PCR|b is locked: no TPM", "a is locked: PCR|b is locked: no TPM"}, {"b is not mounted", "b is not mounted"},
	} {
		if got := strings.Join(joined(strings.Split(c.texts, "|")), "|"); got != c.want {
			t.Errorf("%s: %s, want %s", c.texts, got, c.want)
		}
	}
}
