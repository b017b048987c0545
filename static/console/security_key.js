// Security keys (WebAuthn). A part of a page with data-security-key="create" or "get" has the options of a question, as
// JSON; its button asks the browser, and the form that it stands in is sent with what the key answered.
(() => {
  const bytes = (text) =>
    Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (each) => each.charCodeAt(0));
  const text = (buffer) =>
    btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  const listed = (each) => ({ ...each, id: bytes(each.id) });

  const read = (options) => {
    const asked = { ...options, challenge: bytes(options.challenge) };
    if (options.user) asked.user = { ...options.user, id: bytes(options.user.id) };
    if (options.excludeCredentials) asked.excludeCredentials = options.excludeCredentials.map(listed);
    if (options.allowCredentials) asked.allowCredentials = options.allowCredentials.map(listed);
    return asked;
  };

  const written = (credential) => {
    const response = {};
    for (const part of ["clientDataJSON", "attestationObject", "authenticatorData", "signature"]) {
      if (credential.response[part]) response[part] = text(credential.response[part]);
    }
    return JSON.stringify({ id: text(credential.rawId), rawId: text(credential.rawId), type: credential.type, response });
  };

  const WHY = {
    NotAllowedError: "No key answered: the time ran out, it was cancelled, or none that fits is plugged in.",
    InvalidStateError: "This key is known already.",
    SecurityError: "The browser uses no key for this address.",
  };

  for (const part of document.querySelectorAll("[data-security-key]")) {
    const [button, note, answer] = ["button", "[data-note]", "[data-answer]"].map((each) => part.querySelector(each));
    const say = (words) => { note.textContent = words; };
    if (!window.PublicKeyCredential) {
      say("This browser knows no security keys, or the page has no TLS.");
      continue;
    }
    if (location.origin !== part.dataset.origin) {
      say(`Security keys are used under ${part.dataset.origin} alone: open Parley there.`);
      continue;
    }
    say("");
    button.hidden = false;
    button.addEventListener("click", async () => {
      const needed = part.querySelector("[required]");
      if (needed && !needed.reportValidity()) return;
      say("Touch your key, or follow your browser.");
      button.disabled = true;
      try {
        const asked = { publicKey: read(JSON.parse(part.dataset.options)) };
        const creates = part.dataset.securityKey === "create";
        answer.value = written(await (creates ? navigator.credentials.create(asked) : navigator.credentials.get(asked)));
        answer.form.submit();
      } catch (error) {
        say(WHY[error.name] || `The browser says: ${error.message}`);
        button.disabled = false;
      }
    });
  }
})();
