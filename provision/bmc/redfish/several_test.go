// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/secret"
)

func reference(p string) map[string]any { return map[string]any{"@odata.id": p} }

func references(ps ...string) []any {
	var out []any
	for _, p := range ps {
		out = append(out, reference(p))
	}
	return out
}

// addSystem adds a second system like the fake's own, with other properties.
func addSystem(f *fake, path string, other map[string]any) {
	doc := maps.Clone(f.docs[sysPath])
	maps.Copy(doc, other)
	f.docs[path] = doc
	f.docs["/redfish/v1/Systems"]["Members"] = references("/redfish/v1/Systems/HGX_Baseboard_0", path, sysPath)
}

// TestSeveralSystems: of two systems that may both be the node none is powered.
func TestSeveralSystems(t *testing.T) {
	t.Parallel()
	const other = "/redfish/v1/Systems/Blade2"
	for name, c := range map[string]struct {
		serial string
		other  map[string]any
		want   string // path of the system; "": refused
	}{
		"distinguished by the serial number": {"SN1", map[string]any{"SerialNumber": "SN2"}, sysPath},
		"the other one's serial number":      {"SN2", map[string]any{"SerialNumber": "SN2"}, other},
		"no serial number is known":          {"", map[string]any{"SerialNumber": "SN2", "UUID": "other"}, ""},
		"neither has the serial number":      {"SN9", map[string]any{"SerialNumber": "SN2", "UUID": "other"}, ""},
		"both have that of the chassis":      {"SN1", map[string]any{"UUID": "other"}, ""},
		"one node under two names":           {"", map[string]any{"SerialNumber": "SN1"}, other},
		"the other one cannot be booted":     {"", map[string]any{"Boot": nil, "UUID": "other"}, sysPath},
		"alike, and without UUID or serial":  {"", map[string]any{"UUID": "", "SerialNumber": ""}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			addSystem(f, other, c.other)
			rig(t, f, func(cfg *Config) { cfg.Serial = c.serial }, func(ctx context.Context, cl *Client) {
				err := cl.Open(ctx)
				if c.want == "" {
					if errkind.Of(err) != errkind.Conflict || !strings.Contains(err.Error(), sysPath) || !strings.Contains(err.Error(), other) || errkind.Action(err) == "" {
						t.Errorf("error %v (%s), to do %q", err, errkind.Of(err), errkind.Action(err))
					}
					return
				}
				if err != nil || cl.place.system != c.want {
					t.Errorf("%+v, %v", cl.place, err)
				}
			})
		})
	}
}

// TestSeveralManagers: the manager of the node is told by what it manages and what it
// is, never by standing first.
func TestSeveralManagers(t *testing.T) {
	t.Parallel()
	const one, two = "/redfish/v1/Managers/CMC", "/redfish/v1/Managers/BMC"
	serves := func(kind string, systems ...string) map[string]any {
		return map[string]any{"ManagerType": kind, "FirmwareVersion": kind, "Links": map[string]any{"ManagerForServers": references(systems...)}}
	}
	for name, c := range map[string]struct {
		first, second map[string]any
		want          string // path; "": none is chosen
	}{
		"one serves the node":        {serves("BMC", "/redfish/v1/Systems/Other"), serves("BMC", sysPath), two},
		"one is the BMC":             {serves("EnclosureManager", sysPath), serves("BMC", sysPath), two},
		"both are its BMC":           {serves("BMC", sysPath), serves("BMC", sysPath), ""},
		"neither says what it is":    {map[string]any{}, map[string]any{}, ""},
		"one is not there, is bogus": {nil, map[string]any{}, two},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			f.docs[sysPath]["Links"] = map[string]any{"ManagedBy": references("/redfish/v1/Managers/HGX_BMC_0", one, two), "Chassis": references("/redfish/v1/Chassis/1")}
			delete(f.docs, two)
			for path, doc := range map[string]map[string]any{one: c.first, two: c.second} {
				if doc != nil {
					f.docs[path] = doc
				}
			}
			rig(t, f, nil, func(ctx context.Context, cl *Client) {
				if err := cl.Open(ctx); err != nil || cl.place.manager != c.want {
					t.Fatalf("%+v, %v", cl.place, err)
				}
				if c.want != "" {
					return
				}
				id, err := cl.Identity(ctx)
				if err != nil || id.BMCFirmware != "" || !slices.ContainsFunc(id.Gaps, func(g string) bool { return strings.Contains(g, one) && strings.Contains(g, two) }) {
					t.Errorf("identity %+v, %v", id, err)
				}
				if _, err := cl.Media(ctx); errkind.Of(err) != errkind.Conflict || !strings.Contains(err.Error(), two) {
					t.Errorf("virtual media: %v", err)
				}
			})
		})
	}
}

// TestSeveralChassis: the serial number of the chassis is that of the node's, not of the
// first that is linked.
func TestSeveralChassis(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		board, tray map[string]any
		serial      string // "": not known
	}{
		"a board in a chassis":       {map[string]any{"ChassisType": "Module", "SerialNumber": "BOARD"}, map[string]any{"ChassisType": "RackMount", "SerialNumber": "TRAY"}, "TRAY"},
		"one contains the other":     {map[string]any{"SerialNumber": "BOARD", "Links": map[string]any{"ContainedBy": reference("/redfish/v1/Chassis/Tray")}}, map[string]any{"SerialNumber": "TRAY"}, "TRAY"},
		"a blade, and its enclosure": {map[string]any{"ChassisType": "Enclosure", "SerialNumber": "ENCLOSURE"}, map[string]any{"ChassisType": "Blade", "SerialNumber": "BLADE", "Links": map[string]any{"ContainedBy": reference("/redfish/v1/Chassis/Board")}}, "BLADE"},
		"nothing tells them apart":   {map[string]any{"SerialNumber": "A"}, map[string]any{"SerialNumber": "B"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			f.docs["/redfish/v1/Chassis/Board"], f.docs["/redfish/v1/Chassis/Tray"] = c.board, c.tray
			f.docs[sysPath]["Links"].(map[string]any)["Chassis"] = references("/redfish/v1/Chassis/HGX_Chassis_0", "/redfish/v1/Chassis/Board", "/redfish/v1/Chassis/Tray")
			rig(t, f, nil, func(ctx context.Context, cl *Client) {
				if err := cl.Open(ctx); err != nil {
					t.Fatal(err)
				}
				id, err := cl.Identity(ctx)
				if err != nil || id.Chassis != c.serial {
					t.Errorf("chassis %q, %v", id.Chassis, err)
				}
				_, err = cl.Sensors(ctx)
				if c.serial == "" && (errkind.Of(err) != errkind.Conflict || !slices.ContainsFunc(id.Gaps, func(g string) bool { return strings.HasPrefix(g, "chassis: ") && strings.Contains(g, "Chassis/Tray") })) || c.serial != "" && err != nil {
					t.Errorf("gaps %q, sensors %v", id.Gaps, err)
				}
			})
		})
	}
}

// TestSeveralDrives: an image that somebody put into a virtual drive is not ejected
// while another one is free, and of two full ones none is.
func TestSeveralDrives(t *testing.T) {
	t.Parallel()
	const at, mine, theirs = "/redfish/v1/Managers/BMC/VirtualMedia", "http://c/mine.iso", "http://other/theirs.iso"
	for name, c := range map[string]struct {
		images  []string // of the drives
		insert  string   // number of the drive that gets the image; "": refused
		ejected string
	}{
		"one, empty":             {[]string{""}, "1", ""},
		"one, full":              {[]string{theirs}, "1", "1"},
		"two, empty":             {[]string{"", ""}, "1", ""},
		"two, the first is full": {[]string{theirs, ""}, "2", ""},
		"two, both full":         {[]string{theirs, theirs}, "", ""},
		"it is there already":    {[]string{theirs, mine}, "2", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			f.docs["/redfish/v1/Managers/BMC"]["VirtualMedia"] = reference(at)
			var all []string
			for i, image := range c.images {
				path := at + "/" + string(rune('1'+i))
				all = append(all, path)
				f.docs[path] = map[string]any{"MediaTypes": []string{"CD"}, "Image": image, "Inserted": image != ""}
			}
			f.docs[at] = map[string]any{"Members": references(all...)}
			rig(t, f, nil, func(ctx context.Context, cl *Client) {
				if err := cl.Open(ctx); err != nil {
					t.Fatal(err)
				}
				err := cl.InsertMedia(ctx, mine)
				var inserted, ejected string
				for _, w := range f.writes {
					path, body, _ := strings.Cut(strings.TrimPrefix(w, "PATCH "), " ")
					if strings.Contains(body, mine) {
						inserted = strings.TrimPrefix(path, at+"/")
					} else {
						ejected = strings.TrimPrefix(path, at+"/")
					}
				}
				if inserted != c.insert || ejected != c.ejected {
					t.Errorf("inserted into %q, ejected from %q: %q", inserted, ejected, f.writes)
				}
				if c.insert == "" && (errkind.Of(err) != errkind.Refused || !strings.Contains(err.Error(), theirs)) || c.insert != "" && err != nil {
					t.Errorf("error %v", err)
				}
			})
		})
	}
}

// TestSeveralAccounts: of two accounts of one name none gets the password.
func TestSeveralAccounts(t *testing.T) {
	t.Parallel()
	f := newFake()
	const at = "/redfish/v1/AccountService/Accounts"
	f.docs["/redfish/v1/AccountService"] = map[string]any{"Accounts": reference(at)}
	f.docs[at] = map[string]any{"Members": references(at+"/3", at+"/5")}
	f.docs[at+"/3"] = map[string]any{"Id": "3", "UserName": "ops"}
	f.docs[at+"/5"] = map[string]any{"Id": "5", "UserName": "ops"}
	rig(t, f, nil, func(ctx context.Context, c *Client) {
		if err := c.Open(ctx); err != nil {
			t.Fatal(err)
		}
		err := c.SetPassword(ctx, "ops", secret.NewValue("next"))
		if errkind.Of(err) != errkind.Conflict || !strings.Contains(err.Error(), "3, 5") || len(f.writes) > 0 {
			t.Errorf("%v, writes %q", err, f.writes)
		}
		f.docs[at+"/5"]["UserName"] = "other"
		if err := c.SetPassword(ctx, "ops", secret.NewValue("next")); err != nil || len(f.writes) != 1 || !strings.Contains(f.writes[0], at+"/3") {
			t.Errorf("one account: %v, writes %q", err, f.writes)
		}
	})
}

// TestSeveralLinks: a list where the schema has one resource stands for its member when
// it has one. Of several none is followed, and nothing else is kept from being read.
func TestSeveralLinks(t *testing.T) {
	t.Parallel()
	f := newFake()
	const at = "/redfish/v1/Managers/BMC/VirtualMedia"
	f.docs["/redfish/v1/Managers/BMC"]["VirtualMedia"] = references(at, "/redfish/v1/Other")
	f.docs[at] = map[string]any{"Members": references(at + "/1")}
	f.docs[at+"/1"] = map[string]any{"MediaTypes": []string{"CD"}, "Image": "http://c/x.iso", "Inserted": true}
	rig(t, f, nil, func(ctx context.Context, c *Client) {
		if err := c.Open(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Identity(ctx); err != nil {
			t.Errorf("what nobody asked for is in the way: %v", err)
		}
		if _, err := c.Media(ctx); errkind.Of(err) != errkind.Conflict || !strings.Contains(err.Error(), "/redfish/v1/Other") {
			t.Errorf("two: %v", err)
		}
		for _, one := range [][]any{references(at), references(at, at)} {
			f.docs["/redfish/v1/Managers/BMC"]["VirtualMedia"] = one
			if image, err := c.Media(ctx); err != nil || image != "http://c/x.iso" {
				t.Errorf("one: %q, %v", image, err)
			}
		}
	})
}
