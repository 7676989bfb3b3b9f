"""What deploy/ ships, rendered by the tools that users render it with: helm, and kustomize as kubectl has it."""
