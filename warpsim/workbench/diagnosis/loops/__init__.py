"""The search for the mistakes behind a whole product, which a loop along k has computed."""
