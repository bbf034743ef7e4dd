// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	schema "github.com/stmcginnis/gofish/redfish"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/secret"
)

// noCanary fails the test when the password is in an error or its action.
func noCanary(t testing.TB, err error) {
	t.Helper()
	if text := fmt.Sprintf("%v %+v %#v %s", err, err, err, errkind.Action(err)); strings.Contains(text, fakePassword) {
		t.Errorf("the password is in %q", text)
	}
}

func TestNodeAmongSystems(t *testing.T) {
	t.Parallel()
	f := newFake()
	rig(t, f, nil, func(ctx context.Context, c *Client) {
		if err := c.Open(ctx); err != nil {
			t.Fatal(err)
		}
		id, err := c.Identity(ctx)
		want := Identity{Manufacturer: "Acme", Model: "M1", Serial: "SN1", UUID: "00112233-4455-6677-8899-aabbccddeeff", BIOS: "1.2",
			Chassis: "CH1", BMCModel: "B1", BMCFirmware: "2.14"}
		if err != nil || fmt.Sprint(id) != fmt.Sprint(want) {
			t.Errorf("got  %+v, %v\nwant %+v", id, err, want)
		}
		if len(f.sessions) != 1 || f.logins != 1 {
			t.Errorf("%d sessions after %d log-ins", len(f.sessions), f.logins)
		}
		_ = c.Close(ctx)
		if len(f.sessions) != 0 {
			t.Error("the session was not closed")
		}
	})
}

// The serial number of the inventory decides where nothing else does.
func TestSerialChoosesSystem(t *testing.T) {
	t.Parallel()
	f := newFake()
	boot := map[string]any{"BootSourceOverrideEnabled": "Disabled"}
	f.docs["/redfish/v1/Systems"] = map[string]any{"Members": []any{map[string]any{"@odata.id": "/redfish/v1/Systems/A"}, map[string]any{"@odata.id": "/redfish/v1/Systems/B"}}}
	f.docs["/redfish/v1/Systems/A"] = map[string]any{"SerialNumber": "SA", "PowerState": "On", "Boot": boot}
	f.docs["/redfish/v1/Systems/B"] = map[string]any{"SerialNumber": "SB", "PowerState": "Off", "Boot": boot}
	for serial, want := range map[string]schema.PowerState{"SA": schema.OnPowerState, "SB": schema.OffPowerState} {
		rig(t, f, func(c *Config) { c.Serial = serial }, func(ctx context.Context, c *Client) {
			_ = c.Open(ctx)
			if got, err := c.PowerState(ctx); got != want || err != nil {
				t.Errorf("%s: %s, %v", serial, got, err)
			}
		})
	}
}

func TestLogInErrors(t *testing.T) {
	t.Parallel()
	answer := func(status int, id, text string) func(*fake, http.ResponseWriter, *http.Request) bool {
		return func(f *fake, w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPost {
				return false
			}
			f.logins++
			refuse(w, status, id, text)
			return true
		}
	}
	tests := []struct {
		name   string
		hook   func(*fake, http.ResponseWriter, *http.Request) bool
		kind   errkind.Kind
		is     error
		text   string
		logins int
	}{
		{"wrong password", nil, errkind.Auth, ErrCredential, "wrong", 1},
		{"locked, by text", answer(401, "Base.1.8.GeneralError", "The account is locked out for 300 seconds."), errkind.Auth, ErrLocked, "locked", 1},
		{"locked, by id", answer(403, "IDRAC.2.8.UserAccountLocked", ""), errkind.Auth, ErrLocked, "locked", 1},
		{"password must be changed", answer(403, "Base.1.8.PasswordChangeRequired", "change it"), errkind.Auth, nil, "must be changed", 1},
		{"403", answer(403, "Base.1.8.InsufficientPrivilege", "no"), errkind.Refused, nil, "privilege", 1},
		{"400 in words", answer(400, "iLO.2.14.UnauthorizedLoginAttempt", "The login was unsuccessful."), errkind.Auth, ErrCredential, "wrong", 1},
		{"no free session", answer(503, "IDRAC.2.8.RAC0218", "The maximum number of user sessions is reached."), errkind.Refused, errSessions, "session limit", 4},
		{"no free session, 400", answer(400, "Base.1.8.SessionLimitExceeded", "too many"), errkind.Refused, errSessions, "session limit", 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			f.hook = tt.hook
			rig(t, f, func(c *Config) { c.Password = secret.NewValue(fakePassword + "x") }, func(ctx context.Context, c *Client) {
				start := time.Now()
				err := c.Open(ctx)
				if errkind.Of(err) != tt.kind || tt.is != nil && !errors.Is(err, tt.is) || err == nil || !strings.Contains(err.Error(), tt.text) || errkind.Action(err) == "" {
					t.Errorf("got %v (%s, action %q)", err, errkind.Of(err), errkind.Action(err))
				}
				if f.logins != tt.logins {
					t.Errorf("%d log-ins, want %d", f.logins, tt.logins)
				}
				if spent := time.Since(start); spent > sessionLimit {
					t.Errorf("took %s", spent)
				}
				if tt.hook != nil {
					noCanary(t, err)
				}
			})
		})
	}
}

// A BMC that names the lock's length without a log-in is quoted.
func TestLockoutTold(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.hook = func(_ *fake, w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.Method == http.MethodPost:
			refuse(w, 401, "OEM.AccountLocked", "")
		case strings.HasSuffix(r.URL.Path, "/AccountService"):
			_, _ = io.WriteString(w, `{"AccountLockoutDuration": 300}`)
		default:
			return false
		}
		return true
	}
	rig(t, f, nil, func(ctx context.Context, c *Client) {
		if err := c.Open(ctx); !errors.Is(err, ErrLocked) || !strings.Contains(errkind.Action(err), "5m0s") {
			t.Errorf("%v, action %q", err, errkind.Action(err))
		}
	})
}

// Sessions that another program holds become free: the log-in waits for one.
func TestSessionLimitPasses(t *testing.T) {
	t.Parallel()
	f := newFake()
	n := 0
	f.hook = func(_ *fake, w http.ResponseWriter, r *http.Request) bool {
		if n++; r.Method == http.MethodPost && n < 5 {
			refuse(w, 503, "Base.1.8.SessionLimitExceeded", "too many")
			return true
		}
		return false
	}
	rig(t, f, nil, func(ctx context.Context, c *Client) {
		if err := c.Open(ctx); err != nil {
			t.Error(err)
		}
	})
}

// A service without sessions gets Basic authentication, and a wrong password
// there is tried once.
func TestBasic(t *testing.T) {
	t.Parallel()
	for _, password := range []string{fakePassword, "wrong"} {
		f := newFake()
		f.hook = func(_ *fake, w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPost {
				w.WriteHeader(http.StatusMethodNotAllowed) // iDRAC 8
				return true
			}
			return false
		}
		rig(t, f, func(c *Config) { c.Password = secret.NewValue(password) }, func(ctx context.Context, c *Client) {
			err := c.Open(ctx)
			if password == fakePassword {
				if err != nil || !c.basic {
					t.Errorf("basic=%t, %v", c.basic, err)
				}
				return
			}
			if !errors.Is(err, ErrCredential) || c.LoggedIn() {
				t.Errorf("wrong password: %v", err)
			}
			if got := slices.Index(f.seen, "GET /redfish/v1/Systems"); got != len(f.seen)-1 {
				t.Errorf("asked %q", f.seen)
			}
		})
	}
}

// TestBasicWanted: a service that wants authentication even for a log-in gets Basic,
// tried once; one that judges the password in a message does not.
func TestBasicWanted(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name, offer, body, password string
		basic                       bool
		asked                       int // reads of the systems
	}{
		{"sushy-tools", `Basic realm="Baremetal API"`, `{"error":{"code":"Base.1.0.GeneralError","message":"Authorization required"}}`, fakePassword, true, 2},
		{"a proxy in front", "", "<html>401</html>", fakePassword, true, 2},
		{"a wrong password there", "Basic", "", "wrong", false, 1},
		{"a service that judges", "", `{"error":{"@Message.ExtendedInfo":[{"MessageId":"Base.1.8.ResourceAtUriUnauthorized","Message":"denied"}]}}`, fakePassword, false, 0},
	} {
		f := newFake()
		f.hook = func(_ *fake, w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPost {
				return false
			}
			if x.offer != "" {
				w.Header().Set("WWW-Authenticate", x.offer)
			}
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, x.body)
			return true
		}
		rig(t, f, func(c *Config) { c.Password = secret.NewValue(x.password) }, func(ctx context.Context, c *Client) {
			err := c.Open(ctx)
			asked := 0
			for _, s := range f.seen {
				if s == "GET /redfish/v1/Systems" {
					asked++
				}
			}
			if c.basic != x.basic || (err == nil) != x.basic || !x.basic && !errors.Is(err, ErrCredential) || asked != x.asked {
				t.Errorf("%s: basic=%t, asked %d times, %v", x.name, c.basic, asked, err)
			}
		})
	}
}

// 401 to a good token now and then, and a token that ended: neither reaches the
// caller. A password that changed meanwhile is tried twice at most.
func TestUnauthorizedNowAndThen(t *testing.T) {
	t.Parallel()
	f := newFake()
	rig(t, f, nil, func(ctx context.Context, c *Client) {
		if err := c.Open(ctx); err != nil {
			t.Fatal(err)
		}
		once := true
		f.hook = func(_ *fake, w http.ResponseWriter, _ *http.Request) bool {
			if !once {
				return false
			}
			once = false
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		if _, err := c.PowerState(ctx); err != nil || f.logins != 1 {
			t.Errorf("one 401: %v after %d log-ins", err, f.logins)
		}
		f.hook = nil
		clear(f.sessions)
		if _, err := c.PowerState(ctx); err != nil || f.logins != 2 {
			t.Errorf("dead token: %v after %d log-ins", err, f.logins)
		}
		clear(f.sessions)
		c.cfg.Password = secret.NewValue("changed")
		if _, err := c.PowerState(ctx); errkind.Of(err) != errkind.Auth || f.logins != 2+authLogins {
			t.Errorf("changed password: %v after %d log-ins", err, f.logins)
		}
	})
}

func TestETags(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		want func(match string) bool // what the service takes
		tag  string
		ok   bool
	}{
		{"as it is", func(m string) bool { return m == `W/"1"` }, `W/"1"`, true},
		{"strong only", func(m string) bool { return m == `"1"` }, `W/"1"`, true},
		{"any", func(m string) bool { return m == "*" }, `W/"1"`, true},
		{"none", func(m string) bool { return m == "" }, `W/"1"`, true},
		{"no tag, but the header is wanted", func(m string) bool { return m == "*" }, "", true},
		{"never", func(string) bool { return false }, `W/"1"`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			f.docs[sysPath]["@odata.etag"] = tt.tag
			f.hook = func(_ *fake, w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodPatch || tt.want(r.Header.Get("If-Match")) {
					return false
				}
				w.WriteHeader(http.StatusPreconditionFailed)
				return true
			}
			rig(t, f, nil, func(ctx context.Context, c *Client) {
				_ = c.Open(ctx)
				err := c.SetOverride(ctx, Override{Enabled: "Once", Target: "Pxe", Mode: "UEFI"})
				if (err == nil) != tt.ok || !tt.ok && errkind.Of(err) != errkind.Refused {
					t.Errorf("got %v", err)
				}
				if tt.ok && len(f.writes) != 1 {
					t.Errorf("writes %q", f.writes)
				}
			})
		})
	}
}

func TestOverride(t *testing.T) {
	t.Parallel()
	pxe := Override{Enabled: "Once", Target: "Pxe", Mode: "UEFI"}
	tests := []struct {
		name  string
		tune  func(*fake)
		ask   Override
		write string // "": refused before anything was sent
		kind  errkind.Kind
	}{
		{"full object", func(*fake) {}, pxe,
			"PATCH " + sysPath + ` {"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideMode":"UEFI","BootSourceOverrideTarget":"Pxe"}}`, 0},
		{"moved to the settings resource", func(f *fake) {
			f.docs[sysPath+"/SD"] = map[string]any{}
			f.hook = func(_ *fake, w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodPatch && r.URL.Path == sysPath {
					refuse(w, 400, "Ami.1.0.OperationSupportedInFutureStateURI", "moved")
					return true
				}
				return false
			}
		}, pxe, "PATCH " + sysPath + `/SD {"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideMode":"UEFI","BootSourceOverrideTarget":"Pxe"}}`, 0},
		{"mode refused", func(f *fake) {
			f.hook = func(_ *fake, w http.ResponseWriter, r *http.Request) bool {
				body, _ := io.ReadAll(r.Body)
				r.Body = io.NopCloser(strings.NewReader(string(body)))
				if r.Method == http.MethodPatch && strings.Contains(string(body), "Mode") {
					refuse(w, 400, "Base.1.8.PropertyNotWritable", "BootSourceOverrideMode is read-only")
					return true
				}
				return false
			}
		}, pxe, "PATCH " + sysPath + ` {"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe"}}`, 0},
		{"target that the bmc lacks", func(f *fake) {
			f.docs[sysPath]["Boot"].(map[string]any)["BootSourceOverrideTarget@Redfish.AllowableValues"] = []string{"None", "Pxe"}
		}, Override{Enabled: "Once", Target: "UefiHttp", Mode: "UEFI"}, "", errkind.Unsupported},
		{"no PXE on XE9680", func(f *fake) {
			f.docs[sysPath]["Manufacturer"], f.docs[sysPath]["Model"] = "Dell Inc.", "PowerEdge XE9680"
		}, pxe, "", errkind.Unsupported},
		{"Lenovo knows once only", func(f *fake) { f.docs[sysPath]["Manufacturer"] = "Lenovo" },
			Override{Enabled: "Continuous", Target: "Pxe", Mode: "UEFI"}, "", errkind.Unsupported},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			tt.tune(f)
			rig(t, f, nil, func(ctx context.Context, c *Client) {
				_ = c.Open(ctx)
				err := c.SetOverride(ctx, tt.ask)
				if tt.write == "" {
					if errkind.Of(err) != tt.kind || errkind.Action(err) == "" && tt.kind == errkind.Unsupported || len(f.writes) > 0 {
						t.Errorf("got %v, writes %q", err, f.writes)
					}
					return
				}
				if err != nil || len(f.writes) != 1 || f.writes[0] != tt.write {
					t.Errorf("got %v, writes %q, want %q", err, f.writes, tt.write)
				}
				if got, err := c.Override(ctx); err != nil || got.Target != tt.ask.Target || got.Enabled != tt.ask.Enabled {
					t.Errorf("reads %+v, %v", got, err)
				}
			})
		})
	}
}

func TestReset(t *testing.T) {
	t.Parallel()
	f := newFake()
	rig(t, f, nil, func(ctx context.Context, c *Client) {
		_ = c.Open(ctx)
		if err := c.Reset(ctx, schema.OnResetType); err != nil || c.Sent() != 1 {
			t.Errorf("%v, %d sent", err, c.Sent())
		}
		if s, _ := c.PowerState(ctx); s != schema.OnPowerState {
			t.Errorf("power %s", s)
		}
		if err := c.Reset(ctx, schema.NmiResetType); errkind.Of(err) != errkind.Unsupported || c.Sent() != 1 {
			t.Errorf("unknown type: %v", err)
		}
		f.docs[sysPath]["Actions"] = map[string]any{"#ComputerSystem.Reset": map[string]any{"target": "x"}}
		if err := c.Reset(ctx, schema.OnResetType); errkind.Of(err) != errkind.Internal {
			t.Errorf("target that is no path: %v", err)
		}
	})
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := network.NewMemory()
		c, _ := New(config(m))
		if err := c.Open(t.Context()); errkind.Of(err) != errkind.Unreachable || errkind.Action(err) == "" {
			t.Errorf("got %v", err)
		}
		ln, _ := m.At(bmcAddr.Addr()).Listen(t.Context(), "tcp", bmcAddr.String())
		defer ln.Close()
		go func() {
			conn, err := ln.Accept()
			if err == nil {
				_, _ = conn.Read(make([]byte, 4096))
				_, _ = io.WriteString(conn, "HTTP/1.0 200 OK\r\n\r\n")
				_ = conn.Close()
			}
		}()
		if err := c.Open(t.Context()); errkind.Of(err) != errkind.Mismatch || !strings.Contains(err.Error(), "TLS") {
			t.Errorf("plain HTTP: %v (%s)", err, errkind.Of(err))
		}
	})
}
