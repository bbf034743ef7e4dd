// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/durable"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/keys"
)

// KeptFile is the file that marks a state folder as that of a rehearsal.
const KeptFile = "rehearsal.json"

// Kept is what such a file says.
type Kept struct {
	Site      string    `json:"site"`
	Seed      uint64    `json:"seed"`
	At        time.Time `json:"at"`
	Version   string    `json:"version"`
	Variables []string  `json:"variables,omitempty"` // NAME=VALUE, as the rehearsal was given them
}

// ReadKept reads whether a state folder is that of a rehearsal; false where it is not.
func ReadKept(folder string) (k Kept, ok bool, err error) {
	b, err := os.ReadFile(filepath.Join(folder, KeptFile))
	if os.IsNotExist(err) {
		return k, false, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &k)
	}
	if err != nil {
		return k, true, errkind.New(errkind.Corrupt, "%s marks a folder as that of a rehearsal, and cannot be read: %w", filepath.Join(folder, KeptFile), err).
			Do("Remove the whole folder, and rehearse anew.")
	}
	return k, true, nil
}

// keep leaves the state of the rehearsal in the folder that the operator named, marked so that nothing
// that acts on hardware takes it for one: its evidence and all records. The keys of its nodes are not kept.
func (t *Rehearsal) keep(ctx context.Context) error {
	if t.opt.Keep == "" || t.Store == nil { // nothing was planned
		return nil
	}
	memory, ok := t.Store.Store.(*state.Memory)
	if !ok {
		return errkind.New(errkind.Internal, "the state of a rehearsal is not in memory")
	}
	memory = memory.Reopen() // of a controller that may have died
	fence, err := memory.Claim(ctx, "rehearsal")
	if err != nil {
		return err
	}
	if err := keys.MarkVirtual(ctx, memory, fence); err != nil {
		return err
	}
	if err := os.MkdirAll(t.opt.Keep, 0o700); err != nil {
		return err
	}
	mark, err := json.MarshalIndent(Kept{Site: t.inv.Site.Name, Seed: t.opt.Seed, At: time.Now().UTC().Truncate(time.Second), Version: t.opt.Version, Variables: t.opt.Variables}, "", "  ")
	if err != nil {
		return err
	}
	if err := durable.Write(filepath.Join(t.opt.Keep, KeptFile), append(mark, '\n'), 0o644); err != nil {
		return err
	}
	for _, name := range []string{"evidence", "handover"} {
		from := t.file("state", name)
		if _, err := os.Stat(from); os.IsNotExist(err) {
			continue
		}
		if err := os.CopyFS(filepath.Join(t.opt.Keep, name), os.DirFS(from)); err != nil {
			return err
		}
	}
	if err := memory.SaveAs(ctx, filepath.Join(t.opt.Keep, "state.db")); err != nil {
		return fmt.Errorf("keep the state of the rehearsal: %w", err)
	}
	return nil
}
