"""Several machines that compute together: connecting, handing out parts, and proving that they are alike."""
