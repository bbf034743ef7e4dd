// SPDX-License-Identifier: Apache-2.0

package lvm

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/peertest"
)

// physical makes a physical volume by LVM's own programs, without activating anything,
// and returns its bytes. Each command line is one of lvm(8).
func physical(t *testing.T, size int64, commands ...string) []byte {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes loop devices")
	}
	peertest.Need(t, "losetup")
	peertest.Need(t, "pvcreate")
	path := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("losetup", "-f", "--show", path).Output()
	if err != nil {
		t.Skipf("no loop device: %v", err)
	}
	loop := strings.TrimSpace(string(out))
	defer exec.Command("losetup", "-d", loop).Run() //nolint:errcheck // the machine of a test
	config := `devices{global_filter=["a|^` + loop + `$|","r|.*|"] obtain_device_list_from_udev=0 external_device_info_source="none"} activation{udev_sync=0 udev_rules=0 monitoring=0} backup{backup=0 archive=0}` +
		` global{use_lvmpolld=0 locking_dir="` + t.TempDir() + `"}`
	for _, c := range commands {
		argv := strings.Fields(strings.ReplaceAll(c, "DEVICE", loop))
		argv = append([]string{argv[0], "--config", config, "--driverloaded", "n", "--yes"}, argv[1:]...)
		cmd := exec.Command("lvm", argv...)
		cmd.Env = append(os.Environ(), "LVM_SYSTEM_DIR=", "LVM_SUPPRESS_FD_WARNINGS=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", c, err, out)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const quiet = " -an -Zn -Wn vg0"

// text is a group in a short line.
func text(g Group) string {
	s := fmt.Sprintf("%q %d of %d KiB, whole %v:", g.Name, g.Extents, g.ExtentSize>>10, g.Whole)
	for _, v := range g.Volumes {
		s += fmt.Sprintf(" %s %d at %d KiB", v.Name, v.Extents, v.At>>10)
	}
	return s
}

func TestPeerRead(t *testing.T) {
	many := []string{"pvcreate --dataalignment 64k --metadatasize 20k DEVICE", "vgcreate vg0 DEVICE"}
	for i := range 20 { // more than the ring has room for
		many = append(many, fmt.Sprintf("lvcreate --name v%d --extents 1"+quiet, i), fmt.Sprintf("lvremove vg0/v%d", i))
	}
	for name, c := range map[string]struct {
		commands []string
		want     string
	}{
		"no group": {[]string{"pvcreate DEVICE"}, `"" 0 of 0 KiB, whole false:`},
		"volumes": {[]string{"pvcreate DEVICE", "vgcreate vg0 DEVICE", "lvcreate --name root --extents 10" + quiet, "lvcreate --name scratch-2 --extents 100%FREE" + quiet},
			`"vg0" 49 of 4096 KiB, whole true: root 10 at 1024 KiB scratch-2 39 at 41984 KiB`},
		"in pieces": {[]string{"pvcreate DEVICE", "vgcreate --physicalextentsize 1m vg0 DEVICE", "lvcreate --name a --extents 3" + quiet, "lvcreate --name b --extents 4" + quiet, "lvremove vg0/a", "lvcreate --name c --extents 10" + quiet},
			`"vg0" 199 of 1024 KiB, whole true: b 4 at 4096 KiB c 10 at 8192 KiB`},
		"grown around another": {[]string{"pvcreate DEVICE", "vgcreate vg0 DEVICE", "lvcreate --name a --extents 3" + quiet, "lvcreate --name b --extents 4" + quiet, "lvextend --extents +5 vg0/a"},
			`"vg0" 49 of 4096 KiB, whole true: a 8 at 1024 KiB b 4 at 13312 KiB`},
		"a long past": {append(many[:len(many):len(many)], "lvcreate --name last --extents 2"+quiet), `"vg0" 49 of 4096 KiB, whole true: last 2 at 64 KiB`},
	} {
		b := physical(t, 200<<20, c.commands...)
		g, ok, err := Read(bytes.NewReader(b), int64(len(b)))
		if got := text(g); err != nil || !ok || got != c.want {
			t.Errorf("%s: %s, %v, %v", name, got, ok, err)
		}
	}
}

// TestPeerDamaged: metadata that are damaged are an error, and no group.
func TestPeerDamaged(t *testing.T) {
	b := physical(t, 200<<20, "pvcreate DEVICE", "vgcreate vg0 DEVICE", "lvcreate --name root --extents 10"+quiet)
	at := bytes.LastIndex(b, []byte("logical_volumes"))
	for name, c := range map[string]struct {
		at int
		ok bool
	}{"label": {512 + 40, false}, "header": {4096 + 100, true}, "text": {at, true}} {
		x := bytes.Clone(b[:2<<20])
		x[c.at] ^= 1
		if g, ok, err := Read(bytes.NewReader(x), 200<<20); ok != c.ok || (err == nil) == c.ok || g.Name != "" {
			t.Errorf("%s: %+v, %v, %v", name, g, ok, err)
		}
	}
	if _, ok, err := Read(bytes.NewReader(b[:1000]), 1000); ok || err != nil {
		t.Errorf("a short disk: %v, %v", ok, err)
	}
}

// TestParseRefuses: what is no metadata is an error.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"vg0 {", "vg0 }", "= 1", "a = ", "a = [ 1", `a = "x`, "a { b = { } }", strings.Repeat("a {", 40) + strings.Repeat("}", 40), "a b", "[ 1 ]", "a = [ [ 1 ] ]"} {
		if s, err := parse(bad); err == nil {
			t.Errorf("%q: %v", bad, s)
		}
	}
	got, err := parse("a { # comment\n b = -1 c = \"x \\\"y\\\" #\" d = [\"p\", 2,\n3] e=0.5 }\nf = 1")
	if want := `map[a:map[b:-1 c:x "y" # d:[p 2 3] e:0.5] f:1]`; fmt.Sprint(got) != want || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

// TestParseGroup: where a logical volume begins is known of those alone whose bytes lie on
// this physical volume as they are.
func TestParseGroup(t *testing.T) {
	t.Parallel()
	segment := func(kind, stripes string) string {
		return " { segment_count = 1 segment1 { start_extent = 0 extent_count = 7 type = \"" + kind + "\" " + stripes + " } }\n"
	}
	text := "vg0 { seqno = 3 extent_size = 8192\nphysical_volumes { pv0 { id = \"x-y\" pe_start = 2048 pe_count = 9 } pv1 { id = \"o\" pe_start = 2048 pe_count = 9 } }\nlogical_volumes {\n" +
		"a" + segment("striped", "stripe_count = 1 stripes = [ \"pv0\", 2 ]") + "b" + segment("striped", "stripe_count = 1 stripes = [ \"pv1\", 2 ]") +
		"c" + segment("striped", "stripe_count = 2 stripe_size = 128 stripes = [ \"pv0\", 2, \"pv1\", 3 ]") + "d" + segment("thin", "thin_pool = \"p\"") + "e { segment_count = 0 }\n} }"
	g, sequence, err := parseGroup(text, "xy")
	if err != nil || sequence != 3 || g.Whole || fmt.Sprint(g.Volumes) != "[{a 7 9437184} {b 7 -1} {c 7 -1} {d 7 -1} {e 0 -1}]" {
		t.Errorf("%+v, %d, %v", g, sequence, err)
	}
	if _, _, err := parseGroup(text, "zz"); err == nil {
		t.Error("a physical volume that the metadata do not have")
	}
}

func FuzzParseGroup(f *testing.F) {
	f.Add("vg0 {\nid = \"a-b\"\nseqno = 1\nextent_size = 8192\nphysical_volumes {\npv0 {\nid = \"x-y\"\npe_start = 2048\npe_count = 9\n}\n}\nlogical_volumes {\nroot {\nsegment_count = 1\nsegment1 {\nstart_extent = 0\nextent_count = 2\ntype = \"striped\"\nstripe_count = 1\nstripes = [\n\"pv0\", 0\n]\n}\n}\n}\n}\n")
	f.Fuzz(func(t *testing.T, text string) {
		g, _, err := parseGroup(text, "xy")
		if err != nil {
			return
		}
		for _, v := range g.Volumes {
			if v.At < -1 || v.Extents < 0 || g.Name == "" || g.ExtentSize <= 0 {
				t.Errorf("%+v", g)
			}
		}
	})
}

func FuzzRead(f *testing.F) {
	b := make([]byte, 8192)
	copy(b[512:], labelMagic)
	copy(b[512+24:], labelType)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		if g, ok, err := Read(bytes.NewReader(b), int64(len(b))); !ok && (err != nil || g.Name != "") {
			t.Errorf("%+v, %v", g, err)
		}
	})
}
