//! Paths that several modules use.

/// Path of the Model Context Protocol.
pub(crate) const MCP: &str = "/mcp";
