// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"testing"
	"time"

	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

func TestUpdates(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p Personality) {
		b := start(t, p, Options{})
		bios := root + "/UpdateService/FirmwareInventory/" + p.BIOSFirmware
		finish := func(a answer) map[string]any {
			t.Helper()
			if a.status != http.StatusAccepted {
				t.Fatalf("update: %d %s", a.status, a.raw)
			}
			task, _ := a.body["@odata.id"].(string)
			var last map[string]any
			eventually(t, "the task ends", func() bool {
				last = b.do(t, http.MethodGet, task, "").body
				return last["PercentComplete"] == 100.0
			})
			return last
		}
		a := b.do(t, http.MethodPost, root+"/UpdateService/Actions/UpdateService.SimpleUpdate", `{"ImageURI":"http://10.0.0.1/fw_9.8.7.bin","Targets":["`+bios+`"]}`)
		if got := finish(a)["TaskState"]; got != "Completed" {
			t.Fatalf("task %v", got)
		}
		version := func() any { return b.do(t, http.MethodGet, bios, "").body["Version"] }
		if version() == "9.8.7" {
			t.Error("BIOS firmware is in force before a reset")
		}
		b.do(t, http.MethodPost, b.system(p)+"/Actions/ComputerSystem.Reset", `{"ResetType":"On"}`)
		eventually(t, "the new BIOS", func() bool { return version() == "9.8.7" })

		if got := finish(b.push(t, p, firmwareImage("nothing", "1.0", 100))); got["TaskState"] != "Exception" || got["TaskStatus"] != "Critical" {
			t.Errorf("an image for nothing: %v", got)
		}
		a = b.push(t, p, firmwareImage(p.BMCFirmware, "77.1", 1<<20))
		if a.status != http.StatusAccepted {
			t.Fatalf("push: %d %s", a.status, a.raw)
		}
		eventually(t, "the BMC restarts with it", func() bool {
			_, starts := b.c.BMCStarted()
			return starts == 2 && b.c.Live()
		})
		if got := b.do(t, http.MethodGet, root+"/Managers/"+p.Manager, "").body["FirmwareVersion"]; got != "77.1" {
			t.Errorf("BMC firmware %v", got)
		}
	})
}

// push sends an image as multipart.
func (b *bmc) push(t *testing.T, p Personality, image []byte) answer {
	t.Helper()
	var body bytes.Buffer
	m := multipart.NewWriter(&body)
	_ = m.WriteField("UpdateParameters", `{"Targets":[],"@Redfish.OperationApplyTime":"Immediate"}`)
	w, _ := m.CreateFormFile("UpdateFile", "image.bin")
	_, _ = w.Write(image)
	_ = m.Close()
	return b.do(t, http.MethodPost, root+"/"+p.PushURI, body.String(), "Content-Type: "+m.FormDataContentType())
}

func TestBMCReset(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p Personality) {
		b := start(t, p, Options{})
		token := b.do(t, http.MethodPost, root+"/SessionService/Sessions", `{"UserName":"root","Password":"`+password+`"}`, "Anonymous: yes").header.Get("X-Auth-Token")
		_ = b.c.Press(chassis.PressOn)
		eventually(t, "On", func() bool { return b.c.Power() == chassis.On })
		if a := b.do(t, http.MethodPost, root+"/Managers/"+p.Manager+"/Actions/Manager.Reset", `{"ResetType":"GracefulRestart"}`); a.status != p.ResetStatus {
			t.Fatalf("reset: %d", a.status)
		}
		eventually(t, "live again", b.c.Live)
		if a := b.do(t, http.MethodGet, root+"/Systems", "", "X-Auth-Token: "+token); a.status != 401 {
			t.Errorf("a session outlived the BMC: %d", a.status)
		}
		if b.c.Power() != chassis.On {
			t.Error("the node lost power with its BMC")
		}
	})
}

func TestDeadBMCSaysNothing(t *testing.T) {
	t.Parallel()
	b := start(t, openBMC(), Options{})
	b.do(t, http.MethodGet, root, "") // a connection that is kept
	b.c.Mains(0, false)
	b.c.Mains(1, false)
	b.client.Timeout = 50 * time.Millisecond
	for range 3 {
		if resp, err := b.client.Get(b.url + root); err == nil {
			t.Fatalf("a dead BMC answers %d", resp.StatusCode)
		}
	}
	b.c.Mains(0, true)
	b.client.Timeout = 10 * time.Second
	eventually(t, "live again", b.c.Live)
	if a := b.do(t, http.MethodGet, root+"/Chassis/chassis/PowerSubsystem/PowerSupplies/PSU2", ""); a.body["LineInputStatus"] != "LossOfInput" {
		t.Errorf("supply: %s", a.raw)
	}
}

// firmwareImage makes the bytes of a firmware image that this package's update service
// understands: what it is for, which version it is, and padding of that many
// bytes.
func firmwareImage(component, version string, padding int) []byte {
	return append([]byte("IRONRAIL-FIRMWARE component="+component+" version="+version+"\n"), make([]byte, padding)...)
}
