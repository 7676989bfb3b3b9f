// Package main is a DRA driver for devices that exist in a file only: a list of them as in a ResourceSlice, with their
// taints. It publishes what the file says whenever that changes, and prepares any claim without doing anything.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

const period = 200 * time.Millisecond

type plugin struct{}

func (plugin) PrepareResourceClaims(
	_ context.Context, claims []*resourceapi.ResourceClaim,
) (map[types.UID]kubeletplugin.PrepareResult, error) {
	found := make(map[types.UID]kubeletplugin.PrepareResult)
	for _, claim := range claims {
		var devices []kubeletplugin.Device
		for _, result := range claim.Status.Allocation.Devices.Results {
			if result.Driver == os.Getenv("DRIVER") {
				device := kubeletplugin.Device{Requests: []string{result.Request}, PoolName: result.Pool, DeviceName: result.Device}
				devices = append(devices, device)
			}
		}
		found[claim.UID] = kubeletplugin.PrepareResult{Devices: devices}
	}
	return found, nil
}

func (plugin) UnprepareResourceClaims(
	_ context.Context, claims []kubeletplugin.NamespacedObject,
) (map[types.UID]error, error) {
	found := make(map[types.UID]error)
	for _, claim := range claims {
		found[claim.UID] = nil
	}
	return found, nil
}

func (plugin) HandleError(_ context.Context, err error, what string) {
	log.Printf("%s: %v", what, err)
}

func (plugin) WatchHealthStatus(context.Context, chan<- kubeletplugin.DeviceHealthReport) error {
	return kubeletplugin.ErrHealthNotSupported
}

// publish makes one pool of the node's devices, in one slice.
func publish(ctx context.Context, helper *kubeletplugin.Helper, node string, text []byte) error {
	var devices []resourceapi.Device
	if err := json.Unmarshal(text, &devices); err != nil {
		return err
	}
	pool := resourceslice.Pool{Slices: []resourceslice.Slice{{Devices: devices}}}
	return helper.PublishResources(ctx, resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{node: pool}})
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	name, node, path := os.Getenv("DRIVER"), os.Getenv("NODE_NAME"), os.Getenv("DEVICES")
	config, err := rest.InClusterConfig()
	if err != nil {
		log.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	if err := os.MkdirAll("/var/lib/kubelet/plugins/"+name, 0o755); err != nil {
		log.Fatal(err)
	}
	helper, err := kubeletplugin.Start(ctx, plugin{}, kubeletplugin.DriverName(name), kubeletplugin.KubeClient(client),
		kubeletplugin.NodeName(node))
	if err != nil {
		log.Fatal(err)
	}
	var published []byte
	for ticker := time.NewTicker(period); ; {
		text, err := os.ReadFile(path)
		if err == nil && !bytes.Equal(text, published) {
			// A file that is being written is no list yet.
			if err = publish(ctx, helper, node, text); err == nil {
				published = text
			}
		}
		if err != nil {
			log.Print(err)
		}
		select {
		case <-ctx.Done():
			helper.Stop()
			return
		case <-ticker.C:
		}
	}
}
