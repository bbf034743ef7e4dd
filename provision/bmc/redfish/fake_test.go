// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/secret"
)

// The credential of fake BMCs. The password is a canary: no error may contain it.
const (
	fakeUser     = "admin"
	fakePassword = "canary-7d20e1f4"
)

var (
	bmcAddr  = netip.MustParseAddrPort("10.0.0.1:443")
	ctrlAddr = netip.MustParseAddr("10.0.0.250")
)

// fake is a small stateful service; a test's hook answers before it.
type fake struct {
	mu       sync.Mutex
	docs     map[string]map[string]any // resources by path
	sessions map[string]bool           // tokens
	logins   int                       // log-ins that were tried
	writes   []string                  // "PATCH /path body" that were carried out
	seen     []string                  // "GET /path" of every request
	hook     func(f *fake, w http.ResponseWriter, r *http.Request) bool
}

const sysPath = "/redfish/v1/Systems/DGX"

func newFake() *fake {
	ref := func(p string) map[string]any { return map[string]any{"@odata.id": p} }
	refs := func(p ...string) []any {
		var out []any
		for _, q := range p {
			out = append(out, ref(q))
		}
		return out
	}
	return &fake{sessions: map[string]bool{}, docs: map[string]map[string]any{
		"/redfish/v1/": {"Vendor": "Acme", "Systems": ref("/redfish/v1/Systems"), "Managers": ref("/redfish/v1/Managers"),
			"Chassis": ref("/redfish/v1/Chassis"), "Links": map[string]any{"Sessions": ref("/redfish/v1/SessionService/Sessions")}},
		"/redfish/v1/Systems":                 {"Members": refs("/redfish/v1/Systems/HGX_Baseboard_0", sysPath)},
		"/redfish/v1/Systems/HGX_Baseboard_0": {"SystemType": "Physical", "SerialNumber": "HGX1", "PowerState": "On"},
		sysPath: {"@odata.etag": `W/"1"`, "SystemType": "Physical", "Manufacturer": "Acme", "Model": "M1", "SerialNumber": "SN1  ", "UUID": "00112233-4455-6677-8899-aabbccddeeff",
			"BiosVersion": "1.2", "PowerState": "Off",
			"Boot":    map[string]any{"BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideTarget": "None", "BootSourceOverrideMode": "Legacy"},
			"Actions": map[string]any{"#ComputerSystem.Reset": map[string]any{"target": sysPath + "/Actions/ComputerSystem.Reset", "ResetType@Redfish.AllowableValues": []string{"On", "ForceOff", "GracefulShutdown", "ForceRestart"}}},
			"Links":   map[string]any{"ManagedBy": refs("/redfish/v1/Managers/HGX_BMC_0", "/redfish/v1/Managers/BMC"), "Chassis": refs("/redfish/v1/Chassis/1")}},
		"/redfish/v1/Managers/BMC": {"Model": "B1", "FirmwareVersion": "2.14"},
		"/redfish/v1/Chassis/1":    {"SerialNumber": "CH1"},
	}}
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, r.Method+" "+r.URL.Path)
	if f.hook != nil && f.hook(f, w, r) {
		return
	}
	switch {
	case r.URL.Path == "/redfish/v1/SessionService/Sessions":
		f.login(w, r)
	case strings.HasPrefix(r.URL.Path, "/redfish/v1/SessionService/Sessions/") && r.Method == http.MethodDelete:
		delete(f.sessions, r.Header.Get("X-Auth-Token"))
		w.WriteHeader(http.StatusNoContent)
	case r.URL.Path != "/redfish/v1/" && !f.known(r):
		refuse(w, http.StatusUnauthorized, "Base.1.8.NoValidSession", "no valid session")
	case r.Method == http.MethodGet:
		f.show(w, r)
	case r.Method == http.MethodPatch:
		f.change(w, r)
	case strings.HasSuffix(r.URL.Path, "ComputerSystem.Reset"):
		body, _ := io.ReadAll(r.Body)
		f.writes = append(f.writes, "POST "+string(body))
		state := "On"
		if strings.Contains(string(body), "ForceOff") {
			state = "Off"
		}
		f.docs[sysPath]["PowerState"] = state
		w.WriteHeader(http.StatusNoContent)
	default:
		refuse(w, http.StatusNotFound, "Base.1.8.ResourceMissingAtURI", "not there")
	}
}

func (f *fake) login(w http.ResponseWriter, r *http.Request) {
	f.logins++
	var in struct{ UserName, Password string }
	_ = json.NewDecoder(r.Body).Decode(&in)
	if in.UserName != fakeUser || in.Password != fakePassword {
		refuse(w, http.StatusUnauthorized, "Base.1.8.ResourceAtUriUnauthorized", "While accessing "+in.Password+" the service denied it")
		return
	}
	token := fmt.Sprintf("token%d", f.logins)
	f.sessions[token] = true
	w.Header().Set("X-Auth-Token", token)
	w.Header().Set("Location", fmt.Sprintf("https://bmc.example/redfish/v1/SessionService/Sessions/%d", f.logins))
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write([]byte(`{}`))
}

func (f *fake) known(r *http.Request) bool {
	user, password, basic := r.BasicAuth()
	return f.sessions[r.Header.Get("X-Auth-Token")] || basic && user == fakeUser && password == fakePassword
}

func (f *fake) show(w http.ResponseWriter, r *http.Request) {
	doc, ok := f.docs[r.URL.Path]
	if !ok {
		refuse(w, http.StatusNotFound, "Base.1.8.ResourceMissingAtURI", "not there")
		return
	}
	_ = json.NewEncoder(w).Encode(doc)
}

// change merges one level deep.
func (f *fake) change(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var in map[string]map[string]any
	_ = json.Unmarshal(body, &in)
	doc := f.docs[r.URL.Path]
	f.writes = append(f.writes, "PATCH "+r.URL.Path+" "+string(body))
	for k, v := range in {
		into, _ := doc[k].(map[string]any)
		if into == nil {
			into = map[string]any{}
			doc[k] = into
		}
		for kk, vv := range v {
			into[kk] = vv
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

func refuse(w http.ResponseWriter, status int, id, text string) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"code": "Base.1.8.GeneralError", "message": "see below",
		"@Message.ExtendedInfo": []any{map[string]any{"MessageId": id, "Message": text, "Resolution": "None."}}}})
}

// certificate makes a self-signed certificate of a BMC.
func certificate(t testing.TB, ips ...net.IP) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "bmc"}, IPAddresses: ips,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, form, form, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// config is that of a client with the right credential.
func config(m *network.Memory) Config {
	return Config{Addr: bmcAddr, Username: fakeUser, Password: secret.NewValue(fakePassword), Network: m.At(ctrlAddr), Timeout: 5 * time.Second}
}

// serve runs a service at the BMC's address; the result stops it.
func serve(t testing.TB, m *network.Memory, h http.Handler, cert tls.Certificate) (stop func()) {
	t.Helper()
	ln, err := m.At(bmcAddr.Addr()).Listen(t.Context(), "tcp", bmcAddr.String())
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h, TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}}, ErrorLog: log.New(io.Discard, "", 0)}
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.ServeTLS(ln, "", "") })
	return func() { _ = s.Close(); wg.Wait() }
}

// rig runs body in virtual time with a client of the fake service; tune may change
// the client's configuration.
func rig(t *testing.T, f *fake, tune func(*Config), body func(ctx context.Context, c *Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := network.NewMemory()
		defer serve(t, m, f, certificate(t))()
		cfg := config(m)
		if tune != nil {
			tune(&cfg)
		}
		c, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(t.Context())
		body(t.Context(), c)
	})
}
