// Package main connects the pods of the nodes, as kindnetd does: it gives this node's addresses to the CNI plugins, and
// sends what is for the pods of another node to that node. It knows no IPv6 and enforces no NetworkPolicy.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"time"

	"github.com/vishvananda/netlink"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	configuration = "/etc/cni/net.d/10-kind.conflist"
	period        = 2 * time.Second
	plugins       = `{
  "cniVersion": "0.3.1",
  "name": "kind",
  "plugins": [
    {
      "type": "ptp",
      "ipMasq": false,
      "ipam": {
        "type": "host-local",
        "dataDir": "/run/cni-ipam-state",
        "routes": [{ "dst": "0.0.0.0/0" }],
        "ranges": [[{ "subnet": "%s" }]]
      },
      "mtu": 1500
    },
    { "type": "portmap", "capabilities": { "portMappings": true } }
  ]
}
`
)

func address(node *v1.Node) net.IP {
	for _, one := range node.Status.Addresses {
		if one.Type == v1.NodeInternalIP {
			return net.ParseIP(one.Address)
		}
	}
	return nil
}

// connect does what the nodes of this moment need; what is there already is replaced by the same.
func connect(nodes []v1.Node, self string) error {
	for i := range nodes {
		node := &nodes[i]
		if node.Spec.PodCIDR == "" {
			continue
		}
		if node.Name == self {
			if err := write(fmt.Sprintf(plugins, node.Spec.PodCIDR)); err != nil {
				return err
			}
			continue
		}
		_, pods, err := net.ParseCIDR(node.Spec.PodCIDR)
		if gateway := address(node); err == nil && gateway != nil {
			// The tests' own nodes have addresses that nobody can reach: that must not stop the others.
			if err := netlink.RouteReplace(&netlink.Route{Dst: pods, Gw: gateway}); err != nil {
				log.Printf("no route to the pods of %s: %v", node.Name, err)
			}
		}
	}
	return nil
}

// write replaces the file in one step, since the container runtime reads it whenever it changes.
func write(text string) error {
	if there, err := os.ReadFile(configuration); err == nil && string(there) == text {
		return nil
	}
	if err := os.WriteFile(configuration+".new", []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(configuration+".new", configuration)
}

func main() {
	config, err := rest.InClusterConfig()
	if err != nil {
		log.Fatal(err)
	}
	config.Host = "https://" + os.Getenv("CONTROL_PLANE_ENDPOINT") // a Service has no address before kube-proxy
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	for ; ; time.Sleep(period) {
		list, err := client.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
		if err == nil {
			err = connect(list.Items, os.Getenv("NODE_NAME"))
		}
		if err != nil {
			log.Print(err)
		}
	}
}
