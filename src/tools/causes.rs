pub fn ncu_cause(_l: &str) -> Option<crate::profile::Cause> {
    None
}
pub fn nsys_cause(_l: &str) -> Option<crate::profile::Cause> {
    None
}
pub fn sanitizer_cause(_l: &str) -> Option<crate::profile::Cause> {
    None
}
