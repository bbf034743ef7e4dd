// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"net/http"
	"strings"
)

// route is one kind of resource. Pattern is below the service root: "{S}",
// "{M}" and "{C}" are the node's own system, manager and chassis, any other
// name in braces is one part whose value the handlers find in args.
type route struct {
	pattern             string
	get                 func(*call) obj
	raw                 func(*call) // a GET whose answer is no resource
	patch, post, delete func(*call)
	anon                string // methods that need no log-in
	admin               bool   // changes are for administrators
	own                 bool   // everybody may change what is theirs
}

// routes is the whole service. The first pattern that fits counts.
var routes = []route{
	{pattern: "", get: serviceRoot, anon: "GET"},
	{pattern: "odata", raw: serveOData, anon: "GET"},
	{pattern: "$metadata", raw: serveMetadata, anon: "GET"},
	{pattern: "Registries", get: showRegistries},
	{pattern: "Registries/{id}", get: showRegistry},
	{pattern: "Registries/{id}/{file}", raw: registryFile},

	{pattern: "SessionService", get: sessionService, patch: patchSessionService, admin: true},
	{pattern: "SessionService/Sessions", get: getSessions, post: postSession, anon: "POST", own: true},
	{pattern: "SessionService/Sessions/{id}", get: getSession, delete: deleteSession, own: true},
	{pattern: "AccountService", get: accountService},
	{pattern: "AccountService/Accounts", get: getAccounts, post: postAccount, admin: true},
	{pattern: "AccountService/Accounts/{id}", get: getAccount, patch: patchAccount, delete: deleteAccount, admin: true},
	{pattern: "AccountService/Roles", get: getRoles},
	{pattern: "AccountService/Roles/{id}", get: getRole},
	{pattern: "TaskService", get: taskService},
	{pattern: "TaskService/Tasks", get: getTasks},
	{pattern: "TaskService/Tasks/{id}", get: getTask},
	{pattern: "TaskService/Tasks/{id}/Monitor", raw: getMonitor},
	{pattern: "TaskService/TaskMonitors/{id}", raw: getMonitor},
	{pattern: "EventService", get: eventService},
	{pattern: "EventService/Subscriptions", get: getSubscriptions, post: postSubscription, admin: true},

	{pattern: "UpdateService", get: updateService},
	{pattern: "UpdateService/FirmwareInventory", get: getInventory},
	{pattern: "UpdateService/FirmwareInventory/{id}", get: getComponent},
	{pattern: "UpdateService/Actions/UpdateService.SimpleUpdate", post: simpleUpdate, admin: true},
	{pattern: "UpdateService/update-multipart", post: pushImage, admin: true},
	{pattern: "UpdateService/MultipartUpload", post: pushImage, admin: true},
	{pattern: "UpdateService/upload", post: pushImage, admin: true},

	{pattern: "Systems", get: getSystems},
	{pattern: "Systems/{S}", get: getSystem, patch: patchSystem},
	{pattern: "Systems/{S}/SD", get: getFutureState, patch: patchSystem},
	{pattern: "Systems/{S}/Actions/ComputerSystem.Reset", post: resetSystem},
	{pattern: "Systems/{S}/Bios", get: getBIOS},
	{pattern: "Systems/{S}/Bios/Actions/Bios.ResetBios", post: resetBIOS, admin: true},
	{pattern: "Systems/{S}/Bios/{settings}", get: getSettings, patch: patchSettings, admin: true},
	{pattern: "Systems/{S}/BootOptions", get: getBootOptions},
	{pattern: "Systems/{S}/BootOptions/{id}", get: getBootOption},
	{pattern: "Systems/{S}/SecureBoot", get: getSecureBoot},
	{pattern: "Systems/{S}/SecureBoot/SecureBootDatabases", get: getDatabases},
	{pattern: "Systems/{S}/SecureBoot/SecureBootDatabases/{id}", get: getDatabase},
	{pattern: "Systems/{S}/SecureBoot/SecureBootDatabases/{id}/Certificates", get: getKeys, post: postKey, admin: true},
	{pattern: "Systems/{S}/SecureBoot/SecureBootDatabases/{id}/Certificates/{key}", get: getKey},
	{pattern: "Systems/{S}/Processors", get: getProcessors},
	{pattern: "Systems/{S}/Processors/{id}", get: getProcessor},
	{pattern: "Systems/{S}/Memory", get: getMemories},
	{pattern: "Systems/{S}/Memory/{id}", get: getMemory},
	{pattern: "Systems/{S}/EthernetInterfaces", get: getPorts},
	{pattern: "Systems/{S}/EthernetInterfaces/{id}", get: getPort},
	{pattern: "Systems/{S}/Storage", get: getStorages},
	{pattern: "Systems/{S}/Storage/{id}", get: getStorage},
	{pattern: "Systems/{S}/Storage/{id}/Drives/{drive}", get: getDrive},

	{pattern: "Managers", get: getManagers},
	{pattern: "Managers/{M}", get: getManager, patch: patchManager, admin: true},
	{pattern: "Managers/{M}/Actions/Manager.Reset", post: resetManager, admin: true},
	{pattern: "Managers/{M}/EthernetInterfaces", get: getOwnPorts},
	{pattern: "Managers/{M}/EthernetInterfaces/{id}", get: getOwnPort},
	{pattern: "Managers/{M}/NetworkProtocol", get: getNetworkProtocol},
	{pattern: "Managers/{M}/Jobs", get: getJobs, post: postJob, admin: true},
	{pattern: "Managers/{M}/Jobs/{id}", get: getJob},

	{pattern: "Chassis", get: getChassisAll},
	{pattern: "Chassis/{C}", get: getChassis},
	{pattern: "Chassis/{C}/Actions/Chassis.Reset", post: resetSystem},
	{pattern: "Chassis/{C}/Power", get: getPower},
	{pattern: "Chassis/{C}/Thermal", get: getThermal},
	{pattern: "Chassis/{C}/PowerSubsystem", get: getPowerSubsystem},
	{pattern: "Chassis/{C}/PowerSubsystem/PowerSupplies", get: getSupplies},
	{pattern: "Chassis/{C}/PowerSubsystem/PowerSupplies/{id}", get: getSupply},
	{pattern: "Chassis/{C}/ThermalSubsystem", get: getThermalSubsystem},
	{pattern: "Chassis/{C}/ThermalSubsystem/ThermalMetrics", get: getThermalMetrics},
	{pattern: "Chassis/{C}/ThermalSubsystem/Fans", get: getFans},
	{pattern: "Chassis/{C}/ThermalSubsystem/Fans/{id}", get: getFan},
	{pattern: "Chassis/{C}/Sensors", get: getSensors},
	{pattern: "Chassis/{C}/Sensors/{id}", get: getSensor},
	{pattern: "Chassis/{C}/PCIeDevices", get: getPCIeDevices},
	{pattern: "Chassis/{C}/PCIeDevices/{id}", get: getPCIeDevice},
	{pattern: "Chassis/{C}/NetworkAdapters", get: getAdapters},
	{pattern: "Chassis/{C}/NetworkAdapters/{id}", get: getAdapter},

	{pattern: "{kind}/{owner}/LogServices", get: getLogServices},
	{pattern: "{kind}/{owner}/LogServices/{id}", get: getLogService},
	{pattern: "{kind}/{owner}/LogServices/{id}/Entries", get: getEntries},
	{pattern: "{kind}/{owner}/LogServices/{id}/Entries/{entry}", get: getEntry},
	{pattern: "{kind}/{owner}/LogServices/{id}/Entries/{entry}/attachment", raw: getDump},
	{pattern: "{kind}/{owner}/LogServices/{id}/Actions/LogService.ClearLog", post: clearLog},
	{pattern: "{kind}/{owner}/LogServices/{id}/Actions/LogService.CollectDiagnosticData", post: collectDump, admin: true},
	{pattern: "{kind}/{owner}/VirtualMedia", get: getSlots},
	{pattern: "{kind}/{owner}/VirtualMedia/{id}", get: getSlot},
	{pattern: "{kind}/{owner}/VirtualMedia/{id}/Actions/VirtualMedia.InsertMedia", post: insertMedia},
	{pattern: "{kind}/{owner}/VirtualMedia/{id}/Actions/VirtualMedia.EjectMedia", post: ejectMedia},
	{pattern: "{kind}/{owner}", get: getExtra},
}

// match finds the route of a path and what its placeholders stand for.
func (s *server) match(path string) (*route, []string) {
	if path == "/redfish" {
		return &versions, nil
	}
	rest, ok := strings.CutPrefix(path, root)
	if !ok || rest != "" && rest[0] != '/' {
		return nil, nil
	}
	rest = strings.TrimPrefix(rest, "/")
	depth := strings.Count(rest, "/")
	for i := range s.routes {
		rt := &s.routes[i]
		if strings.Count(rt.pattern, "/") != depth {
			continue
		}
		if args, ok := s.fits(rt.pattern, rest); ok {
			return rt, args
		}
	}
	return nil, nil
}

// fits compares part by part; both have equally many.
func (s *server) fits(pattern, path string) (args []string, ok bool) {
	for more := true; more; {
		var want, got string
		want, pattern, more = strings.Cut(pattern, "/")
		got, path, _ = strings.Cut(path, "/")
		switch want {
		case "{S}":
			want = s.p.System
		case "{M}":
			want = s.p.Manager
		case "{C}":
			want = s.p.Chassis
		default:
			if strings.HasPrefix(want, "{") && got != "" {
				args = append(args, got)
				continue
			}
		}
		if got != want {
			return nil, false
		}
	}
	return args, true
}

// anonymous reports whether the method needs no log-in.
func (rt *route) anonymous(method string) bool {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	return rt.anon == method
}

// allow lists the methods for the header of that name.
func (rt *route) allow() string {
	var m []string
	for _, x := range []struct {
		name string
		has  bool
	}{
		{"GET, HEAD", rt.get != nil || rt.raw != nil}, {"PATCH", rt.patch != nil},
		{"POST", rt.post != nil}, {"DELETE", rt.delete != nil},
	} {
		if x.has {
			m = append(m, x.name)
		}
	}
	return strings.Join(m, ", ")
}
