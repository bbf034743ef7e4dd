// SPDX-License-Identifier: Apache-2.0

package chassis

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestBootOverride(t *testing.T) {
	t.Parallel()
	c := New(Config{})
	if err := c.SetOverride(Override{Enabled: "Sometimes", Target: BootPXE}); !errors.Is(err, errValue) {
		t.Errorf("unknown word: %v", err)
	}
	once := Override{Enabled: "Once", Target: BootPXE, UEFI: true}
	if err := c.SetOverride(once); err != nil {
		t.Fatal(err)
	}
	if got := c.TakeBoot(); got != once {
		t.Errorf("first boot %+v", got)
	}
	if got := c.TakeBoot(); got.Target != BootNone || got.Enabled != "Disabled" {
		t.Errorf("second boot %+v", got)
	}
	always := Override{Enabled: "Continuous", Target: BootHDD}
	_ = c.SetOverride(always)
	for range 2 {
		if c.TakeBoot() != always {
			t.Error("continuous was consumed")
		}
	}
	c.LoseWrites("boot")
	if err := c.SetOverride(once); err != nil || c.Override() != always {
		t.Errorf("lost write: %v, %+v", err, c.Override())
	}
}

func TestBIOSAndFirmware(t *testing.T) {
	t.Parallel()
	first := map[string]string{"SriovGlobalEnable": "Disabled", "LogicalProc": "Enabled"}
	b := &board{}
	rig(t, Config{BIOS: first, Components: []Component{{"BIOS", "BIOS", "1.0", true}, {"PSU", "PSU", "7", false}}}, b, func(c *Chassis) {
		if err := c.SetBIOS(map[string]string{"Nonsense": "1", "LogicalProc": "Disabled"}); !errors.Is(err, errValue) {
			t.Errorf("unknown attribute: %v", err)
		}
		_ = c.SetBIOS(map[string]string{"SriovGlobalEnable": "Enabled"})
		_ = c.SetBIOS(map[string]string{"LogicalProc": "Disabled"})
		current, pending := c.BIOS()
		if current["SriovGlobalEnable"] != "Disabled" || len(pending) != 2 {
			t.Errorf("before POST: %v, pending %v", current, pending)
		}
		if err := c.Update("PSU", "8"); !errors.Is(err, errUnsupported) {
			t.Errorf("update of a fixed component: %v", err)
		}
		_ = c.Update("BIOS", "2.0")
		if c.Components()[0].Version != "1.0" || c.Staged("BIOS") != "2.0" {
			t.Error("firmware is in force before a reset")
		}
		_ = c.Press(PressOn)
		wait(time.Minute)
		current, pending = c.BIOS()
		if current["SriovGlobalEnable"] != "Enabled" || current["LogicalProc"] != "Disabled" || pending != nil {
			t.Errorf("after POST: %v, pending %v", current, pending)
		}
		if c.Components()[0].Version != "2.0" {
			t.Errorf("components %v", c.Components())
		}
		if first["SriovGlobalEnable"] != "Disabled" {
			t.Error("the shared map was written")
		}
	})
}

func TestLogIsCircular(t *testing.T) {
	t.Parallel()
	c := New(Config{})
	for range logSize + 100 {
		c.Log("Critical", "Memory", "uncorrectable ECC")
	}
	e := c.Entries()
	if len(e) != logSize || e[0].ID != 101 || e[len(e)-1].ID != logSize+100 {
		t.Errorf("%d entries, %d to %d", len(e), e[0].ID, e[len(e)-1].ID)
	}
	c.ClearLog()
	if e = c.Entries(); len(e) != 1 || e[0].Message != "Log cleared" {
		t.Errorf("after clearing: %v", e)
	}
}

func TestLoginLocksOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := New(Config{LockAfter: 3, LockFor: time.Minute, Accounts: []Account{{Username: "root", Password: "calvin", Role: "Administrator", Enabled: true}}})
		for range 2 {
			_, _ = c.Login("root", "wrong")
		}
		if a, err := c.Login("root", "calvin"); err != nil || a.Role != "Administrator" {
			t.Fatalf("log-in: %v", err)
		}
		for range 3 {
			if _, err := c.Login("root", "wrong"); !errors.Is(err, errWrong) {
				t.Fatalf("wrong password: %v", err)
			}
		}
		if _, err := c.Login("root", "calvin"); !errors.Is(err, ErrLocked) {
			t.Errorf("locked account: %v", err)
		}
		time.Sleep(time.Minute)
		if _, err := c.Login("root", "calvin"); err != nil {
			t.Errorf("after the lock: %v", err)
		}
		c.Lock(time.Hour)
		if _, err := c.Login("root", "calvin"); !errors.Is(err, ErrLocked) || !c.Locked("root") {
			t.Errorf("after Lock: %v", err)
		}
		if _, err := c.Login("nobody", ""); !errors.Is(err, errWrong) {
			t.Errorf("unknown user: %v", err)
		}
	})
}

func TestAccounts(t *testing.T) {
	t.Parallel()
	c := New(Config{Accounts: []Account{{ID: 2, Username: "root", Password: "a", Role: "Administrator", Enabled: true}}})
	if err := c.SetAccount(Account{Username: "op", Password: "b", Role: "Operator", Enabled: true}); err != nil {
		t.Fatal(err)
	}
	if got := c.Accounts(); len(got) != 2 || got[0].ID != 1 || got[0].Username != "op" {
		t.Fatalf("accounts %v", got)
	}
	if err := c.SetAccount(Account{ID: 3, Username: "op"}); !errors.Is(err, ErrAccount) {
		t.Errorf("name in use: %v", err)
	}
	if err := c.SetAccount(Account{ID: 2, Username: "root", Role: "ReadOnly", Enabled: true}); err != nil {
		t.Fatal(err)
	}
	if a, err := c.Login("root", "a"); err != nil || a.Role != "ReadOnly" {
		t.Errorf("the password was not kept: %v %v", a, err)
	}
	if err := c.SetAccount(Account{ID: 1}); err != nil || len(c.Accounts()) != 1 {
		t.Errorf("delete: %v, %v", err, c.Accounts())
	}
}
