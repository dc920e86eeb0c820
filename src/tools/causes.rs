pub fn nsys_cause(_l: &str) -> Option<crate::profile::Unavailable> {
    None
}
