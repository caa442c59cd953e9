//! What is sent to a webhook is signed, as the Standard Webhooks have it:
//!
//! ```text
//!  webhook-id          names what is sent; the same when it is sent again
//!  webhook-timestamp   seconds since 1970
//!  webhook-signature   v1,BASE64( HMAC-SHA256( secret, id "." timestamp "." body ) )
//! ```
//! The secret is the bytes behind `whsec_`, in base64; one that does not look like this is taken as it is.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;

const PREFIX: &str = "whsec_";

/// The value of `webhook-signature`.
pub fn signature(secret: &str, id: &str, timestamp: i64, body: &[u8]) -> String {
    let bytes = secret.strip_prefix(PREFIX).and_then(|text| STANDARD.decode(text).ok());
    let key = hmac::Key::new(hmac::HMAC_SHA256, bytes.as_deref().unwrap_or(secret.as_bytes()));
    let mut context = hmac::Context::with_key(&key);
    for part in [id.as_bytes(), b".", timestamp.to_string().as_bytes(), b".", body] {
        context.update(part);
    }
    format!("v1,{}", STANDARD.encode(context.sign()))
}

/// A secret made of these bytes.
pub fn new_secret(bytes: &[u8; 32]) -> String {
    format!("{PREFIX}{}", STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the Standard Webhooks' own libraries.
    #[test]
    fn signatures_are_those_that_others_check() {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let signed = signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_ne!(
            signed,
            signature("other", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#)
        );
        assert!(new_secret(&[7; 32]).starts_with("whsec_Bwc"));
    }
}
