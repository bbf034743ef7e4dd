// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
)

const someVolume = "6c616230-0000-4000-8000-000000000001"

// TestRecovery: a key is made once for a volume, in a file that nobody else reads, and found again.
func TestRecovery(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "keys")
	r := RecoveryIn(dir)
	if _, err := r.Find(someVolume); errkind.Of(err) != errkind.NotFound || !strings.Contains(errkind.Action(err), "state restore") {
		t.Errorf("no key: %v", err)
	}
	if list, err := r.List(); len(list) != 0 || err != nil {
		t.Errorf("no keys: %v, %v", list, err)
	}
	k, err := r.Make("n1", "scratch", someVolume)
	if err != nil || !regexp.MustCompile(`^([cbdefghijklnrtuv]{8}-){7}[cbdefghijklnrtuv]{8}$`).MatchString(k.Text) {
		t.Fatalf("%+v, %v", k, err)
	}
	if again, err := r.Make("n1", "scratch", someVolume); again != k || err != nil {
		t.Errorf("made again: %+v, %v", again, err)
	}
	other, err := r.Make("n1", "home", strings.Replace(someVolume, "01", "02", 1))
	if err != nil || other.Text == k.Text {
		t.Errorf("the key of another volume is %+v, %v", other, err)
	}
	if list, err := r.List(); len(list) != 2 || err != nil || list[0] != k {
		t.Errorf("%v, %v", list, err)
	}
	file := filepath.Join(dir, RecoveryFolder, someVolume+recoverySuffix)
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	for _, bad := range []string{"", "../boot", strings.ToUpper(someVolume[:1]) + "x" + someVolume[2:]} {
		if _, err := r.Make("n1", "scratch", bad); errkind.Of(err) != errkind.Mismatch && errkind.Of(err) != errkind.Invalid {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := CheckModes(dir); errkind.Of(err) != errkind.Refused || !strings.Contains(err.Error(), "others can read it") {
		t.Errorf("a key that others can read: %v", err)
	}
	if err := os.WriteFile(file, []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if list, err := r.List(); errkind.Of(err) != errkind.Corrupt || len(list) != 1 || list[0] != other {
		t.Errorf("a key that is torn: %v, %v", list, err)
	}
}

func TestIsRecoveryFile(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"recovery/" + someVolume + ".key": true, "recovery/../" + someVolume + ".key": false, "recovery/" + someVolume: false, "/recovery/" + someVolume + ".key": false, "recovery/x.key": false,
	} {
		if IsRecoveryFile(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}
