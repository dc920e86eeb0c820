//! Paths that more than one part has to know.

/// Where agents find the Model Context Protocol.
pub(crate) const MCP: &str = "/mcp";
