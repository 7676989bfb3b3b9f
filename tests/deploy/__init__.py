"""Manifests of deploy/, rendered by the tools that users render them with: helm, and kustomize as kubectl has it."""
