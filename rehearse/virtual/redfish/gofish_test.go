// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/url"
	"slices"
	"testing"
	"time"

	bmclib "github.com/bmc-toolbox/bmclib/v2/providers/redfish"
	"github.com/go-logr/logr"
	"github.com/stmcginnis/gofish"
	"github.com/stmcginnis/gofish/common"
	rf "github.com/stmcginnis/gofish/redfish"

	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// TestGofishWalks lets gofish, which knows nothing of this package, read the
// whole tree and change what can be changed.
func TestGofishWalks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p Personality) {
		p.Quirks.Flaky403 = 0
		b := start(t, p, Options{})
		b.c.Log("Critical", "Memory", "Uncorrectable ECC")
		c, err := gofish.Connect(gofish.ClientConfig{Endpoint: b.url, Username: user, Password: password, Insecure: true})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Logout()
		sys := gofishSystem(t, c, p)
		gofishReads(t, c, sys)
		gofishBoots(t, b, c, sys, p)
		gofishChanges(t, b, c, sys, p)
	})
}

// TestGofishKeys: gofish reads the certificates in db of Secure Boot; one that is posted shows after
// a POST, and what is no certificate is refused.
func TestGofishKeys(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p Personality) {
		p.Quirks.Flaky403 = 0
		b := start(t, p, Options{SecureBoot: func() bool { return true }})
		first, second := certificate(t, "first"), certificate(t, "second")
		b.c.Enrol(first) // as delivered
		b.c.ApplyBIOS()
		c, err := gofish.Connect(gofish.ClientConfig{Endpoint: b.url, Username: user, Password: password, Insecure: true})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Logout()
		sys := gofishSystem(t, c, p)
		at := sys.ODataID + "/SecureBoot/SecureBootDatabases/db/Certificates"
		names := func() (list []string) {
			t.Helper()
			db, err := rf.GetSecureBootDatabase(c, sys.ODataID+"/SecureBoot/SecureBootDatabases/db")
			if err != nil {
				t.Fatal(err)
			}
			certs, err := db.Certificates()
			if err != nil || db.DatabaseID != "db" {
				t.Fatalf("database %s: %v", db.DatabaseID, err)
			}
			for _, k := range certs {
				if block, _ := pem.Decode([]byte(k.CertificateString)); block == nil || k.CertificateType != rf.PEMCertificateType {
					t.Errorf("%s: %q %s", k.ID, k.CertificateString, k.CertificateType)
				}
				list = append(list, k.Subject.CommonName)
			}
			slices.Sort(list) // they are read side by side
			return list
		}
		if _, err := c.Post(at, map[string]string{"CertificateString": "nonsense", "CertificateType": "PEM"}); err == nil {
			t.Error("nonsense is a certificate")
		}
		r, err := c.Post(at, map[string]string{"CertificateString": second, "CertificateType": "PEM"})
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		if got := names(); !slices.Equal(got, []string{"first"}) {
			t.Errorf("before the POST: %q", got)
		}
		b.c.ApplyBIOS()
		if got := names(); !slices.Equal(got, []string{"first", "second"}) {
			t.Errorf("after it: %q", got)
		}
	})
}

// certificate is one with a name, in PEM.
func certificate(t *testing.T, name string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: name}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// gofishSystem finds the node among the systems.
func gofishSystem(t *testing.T, c *gofish.APIClient, p Personality) *rf.ComputerSystem {
	t.Helper()
	all, err := c.Service.Systems()
	if err != nil || len(all) != 1+len(p.Quirks.ExtraSystems) {
		t.Fatalf("%d systems: %v", len(all), err)
	}
	for _, s := range all {
		if s.ID == p.System {
			return s
		}
	}
	t.Fatal("the node is not there")
	return nil
}

// must fails unless a list was read and has as many members.
func must[T any](t *testing.T, what string, want int) func([]T, error) []T {
	t.Helper()
	return func(got []T, err error) []T {
		t.Helper()
		if err != nil || len(got) != want {
			t.Errorf("%s: %d, want %d: %v", what, len(got), want, err)
		}
		return got
	}
}

func gofishReads(t *testing.T, c *gofish.APIClient, sys *rf.ComputerSystem) {
	t.Helper()
	h := hardware()
	must[*rf.Processor](t, "processors", len(h.Processors))(sys.Processors())
	must[*rf.Memory](t, "memory", len(h.DIMMs))(sys.Memory())
	ports := must[*rf.EthernetInterface](t, "ports", len(h.NICs))(sys.EthernetInterfaces())
	for _, nic := range h.NICs {
		if !slices.ContainsFunc(ports, func(p *rf.EthernetInterface) bool { return p.MACAddress == nic.MAC.String() }) {
			t.Errorf("no port has MAC %s", nic.MAC)
		}
	}
	must[*rf.BootOption](t, "boot options", 2*len(h.NICs)+1)(sys.BootOptions())
	must[*rf.PCIeDevice](t, "PCIe devices", len(h.PCIe))(sys.PCIeDevices())
	for _, s := range must[*rf.Storage](t, "storage", 1)(sys.Storage()) {
		must[*rf.Drive](t, "drives", len(h.Drives))(s.Drives())
	}
	if b, err := sys.SecureBoot(); err != nil || b.SecureBootEnable {
		t.Errorf("secure boot: %v", err)
	}
	enclosures, err := c.Service.Chassis()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range enclosures {
		if e.ChassisType != rf.RackMountChassisType {
			continue
		}
		if w, err := e.Power(); err != nil || len(w.PowerSupplies) != 2 {
			t.Errorf("power: %v", err)
		}
		if th, err := e.Thermal(); err != nil || len(th.Temperatures) == 0 {
			t.Errorf("thermal: %v", err)
		}
		must[*rf.Sensor](t, "sensors", 2)(e.Sensors())
		must[*rf.NetworkAdapter](t, "adapters", len(h.NICs))(e.NetworkAdapters())
		if sub, err := e.PowerSubsystem(); err != nil {
			t.Errorf("power subsystem: %v", err)
		} else {
			must[*rf.PowerSupply](t, "supplies", 2)(sub.PowerSupplies())
		}
	}
	if r, err := c.Service.MessageRegistries(); err != nil || len(r) == 0 || len(r[0].Messages) < len(messages) {
		t.Errorf("message registries: %v", err)
	}
	must[*rf.Session](t, "sessions", 1)(c.Service.Sessions())
	if e, err := c.Service.EventService(); err != nil || e.ServiceEnabled {
		t.Errorf("event service: %v", err)
	}
}

func gofishBoots(t *testing.T, b *bmc, c *gofish.APIClient, sys *rf.ComputerSystem, p Personality) {
	t.Helper()
	err := sys.SetBoot(rf.Boot{BootSourceOverrideTarget: rf.PxeBootSourceOverrideTarget, BootSourceOverrideEnabled: rf.OnceBootSourceOverrideEnabled,
		BootSourceOverrideMode: rf.UEFIBootSourceOverrideMode})
	if err != nil {
		t.Fatalf("set boot: %v", err)
	}
	sys = gofishSystem(t, c, p)
	if sys.Boot.BootSourceOverrideTarget != rf.PxeBootSourceOverrideTarget || sys.Boot.BootSourceOverrideMode != rf.UEFIBootSourceOverrideMode {
		t.Errorf("boot read back %+v", sys.Boot)
	}
	if err := sys.Reset(rf.OnResetType); err != nil {
		t.Fatalf("power on: %v", err)
	}
	eventually(t, "on", func() bool { return gofishSystem(t, c, p).PowerState == rf.OnPowerState })
	if p.AlreadyFails {
		if err := sys.Reset(rf.OnResetType); err == nil {
			t.Error("on when on")
		}
	}
	if err := sys.Reset(rf.GracefulShutdownResetType); err != nil {
		t.Fatalf("shutdown: %v", err)
	}
	eventually(t, "off", func() bool { return b.c.Power() == chassis.Off })
}

func gofishChanges(t *testing.T, b *bmc, c *gofish.APIClient, sys *rf.ComputerSystem, p Personality) {
	t.Helper()
	bios, err := sys.Bios()
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range p.Attributes {
		if bios.Attributes.String(name) != value {
			t.Errorf("BIOS %s = %s", name, bios.Attributes.String(name))
		}
		if err := bios.UpdateBiosAttributes(rf.SettingsAttributes{name: "Changed"}); err != nil {
			t.Errorf("BIOS: %v", err)
		}
		break
	}
	media, err := sys.VirtualMedia()
	if p.Media.Parent == "Managers" {
		m, _ := c.Service.Managers()
		for _, x := range m {
			if x.ID == p.Manager {
				media, err = x.VirtualMedia()
			}
		}
	}
	if err != nil || len(media) != 2 {
		t.Fatalf("virtual media: %d %v", len(media), err)
	}
	if err := media[0].InsertMedia("http://10.0.0.1/boot.iso", true, true); err != nil || b.c.Media()[media[0].ID] != "http://10.0.0.1/boot.iso" {
		t.Errorf("insert: %v", err)
	}
	if err := media[0].InsertMedia("http://10.0.0.1/boot.iso", true, true); err == nil {
		t.Error("a second insert into a full slot")
	}
	if err := media[0].EjectMedia(); err != nil || len(b.c.Media()) != 0 {
		t.Errorf("eject: %v", err)
	}
	gofishLogs(t, b, c, sys, p)
	u, err := c.Service.UpdateService()
	if err != nil {
		t.Fatal(err)
	}
	must[*rf.SoftwareInventory](t, "firmware", len(p.Firmware))(u.FirmwareInventories())
	bios1 := root + "/UpdateService/FirmwareInventory/" + p.BIOSFirmware
	if err := u.SimpleUpdate(&rf.SimpleUpdateParameters{ImageURI: "http://10.0.0.1/bios_3.3.3.bin", Targets: []string{bios1}}); err != nil {
		t.Errorf("update: %v", err)
	}
	eventually(t, "the task ends", func() bool {
		tasks, err := c.Service.Tasks()
		return err == nil && len(tasks) > 0 && tasks[len(tasks)-1].TaskState == rf.CompletedTaskState
	})
	if b.c.Staged(p.BIOSFirmware) != "3.3.3" {
		t.Error("nothing is staged")
	}
}

func gofishLogs(t *testing.T, b *bmc, c *gofish.APIClient, sys *rf.ComputerSystem, p Personality) {
	t.Helper()
	var logs []*rf.LogService
	switch p.Logs[0].Parent {
	case "Systems":
		logs, _ = sys.LogServices()
	case "Managers":
		if m, err := c.Service.ManagerProvidingService(); err == nil {
			logs, _ = m.LogServices()
		}
	}
	events := slices.DeleteFunc(slices.Clone(logs), func(l *rf.LogService) bool { return l.ID == "Dump" })
	if len(events) != 1 {
		t.Fatalf("%d logs", len(events))
	}
	logs = events
	entries, err := logs[0].Entries()
	if err != nil || !slices.ContainsFunc(entries, func(e *rf.LogEntry) bool {
		return e.Message == "Uncorrectable ECC" && e.Severity == rf.CriticalEventSeverity
	}) {
		t.Errorf("entries: %d %v", len(entries), err)
	}
	if err := logs[0].ClearLog(); err != nil || len(b.c.Entries()) != 1 {
		t.Errorf("clear: %v", err)
	}
}

// TestBmclib drives the service with bmclib's Redfish provider.
func TestBmclib(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p Personality) {
		p.Quirks.Flaky403 = 0
		p.Quirks.ExtraSystems, p.Quirks.ExtraManagers = nil, nil // bmclib looks for names that dgx-h100 does not give
		b := start(t, p, Options{})
		at, _ := url.Parse(b.url)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		c := bmclib.New(at.Hostname(), user, password, logr.Discard(), bmclib.WithPort(at.Port()))
		if err := c.Open(ctx); err != nil {
			t.Fatal(err)
		}
		defer c.Close(ctx)
		if ok, err := c.BootDeviceSet(ctx, "pxe", false, true); err != nil || !ok {
			t.Fatalf("boot: %v", err)
		}
		if o, err := c.BootDeviceOverrideGet(ctx); err != nil || o.Device != "pxe" || !o.IsEFIBoot || o.IsPersistent {
			t.Errorf("read back %+v %v", o, err)
		}
		if _, err := c.PowerSet(ctx, "on"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "on", func() bool { s, err := c.PowerStateGet(ctx); return err == nil && s == "On" })
		if _, err := c.PowerSet(ctx, "off"); err != nil {
			t.Error(err)
		}
		eventually(t, "off", func() bool { return b.c.Power() == chassis.Off })
		kind := "CD"
		if ok, err := c.SetVirtualMedia(ctx, kind, "http://10.0.0.1/x.iso"); err != nil || !ok || len(b.c.Media()) != 1 {
			t.Errorf("media: %v", err)
		}
		if p.System != "DGX" { // a name that bmclib does not look for
			bmclibInventory(t, ctx, c, p)
		}
		users, err := c.UserRead(ctx)
		if err != nil || len(users) == 0 {
			t.Errorf("users: %v", err)
		}
	})
}

func bmclibInventory(t *testing.T, ctx context.Context, c *bmclib.Conn, p Personality) {
	t.Helper()
	d, err := c.Inventory(ctx)
	if err != nil || d.Serial == "" || d.Model != p.Model || len(d.CPUs) != 1 || len(d.Memory) != 1 || len(d.Drives) != 1 {
		t.Errorf("inventory: %v %+v", err, d)
	}
	bios, err := c.GetBiosConfiguration(ctx)
	if err != nil || len(bios) != len(p.Attributes) {
		t.Errorf("bios: %v %v", bios, err)
	}
}

// TestGofishLight: gofish switches the light that locates a node, by the switch and by the older
// property, and reads both.
func TestGofishLight(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p Personality) {
		b := start(t, p, Options{})
		c, err := gofish.Connect(gofish.ClientConfig{Endpoint: b.url, Username: user, Password: password, Insecure: true})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Logout()
		for _, want := range []struct {
			set    func(*rf.ComputerSystem)
			active bool
			led    common.IndicatorLED
		}{
			{func(s *rf.ComputerSystem) { s.LocationIndicatorActive = true }, true, common.LitIndicatorLED},
			{func(s *rf.ComputerSystem) { s.IndicatorLED = common.BlinkingIndicatorLED }, true, common.BlinkingIndicatorLED},
			{func(s *rf.ComputerSystem) { s.LocationIndicatorActive = false }, false, common.OffIndicatorLED},
		} {
			sys := gofishSystem(t, c, p)
			want.set(sys)
			if err := sys.Update(); err != nil {
				t.Fatal(err)
			}
			if sys = gofishSystem(t, c, p); sys.LocationIndicatorActive != want.active || sys.IndicatorLED != want.led {
				t.Errorf("reads %t, %s; want %t, %s", sys.LocationIndicatorActive, sys.IndicatorLED, want.active, want.led)
			}
		}
	})
}
