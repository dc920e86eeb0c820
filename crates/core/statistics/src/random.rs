//! Seeded random numbers for permutation tests, and for simulations that test the statistics. The
//! main type is [`RandomStream`].

/// SplitMix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
pub struct RandomStream {
    state: u64,
    spare: Option<f64>,
}

impl RandomStream {
    /// Creates the stream of random numbers that belongs to a seed.
    pub fn new(seed: u64) -> Self {
        let mut stream = Self { state: seed.wrapping_mul(0xD1B5_4A32_D192_ED03), spare: None };
        stream.next_u64();
        stream
    }

    fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a random number that is uniformly distributed in (0, 1).
    pub fn uniform(&mut self) -> f64 {
        ((self.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Returns a random number with the standard normal distribution, by the method of Box and
    /// Muller.
    pub fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * self.uniform()).sin_cos();
        self.spare = Some(radius * sin);
        radius * cos
    }
}
