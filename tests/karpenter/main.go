// Package main asks Karpenter's scheduler whether a pod fits a NodePool whose template has these labels.
//
// It reads {"pod": ..., "labels": {...}} from its standard input and prints why not; nothing if it fits.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/karpenter/pkg/scheduling"
)

func main() {
	var asked struct {
		Pod    corev1.Pod        `json:"pod"`
		Labels map[string]string `json:"labels"`
	}
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	pool := scheduling.NewLabelRequirements(asked.Labels)
	if err := pool.Compatible(scheduling.NewPodRequirements(&asked.Pod), scheduling.AllowUndefinedWellKnownLabels); err != nil {
		fmt.Println(err)
	}
}
