// Where this page comes from, and where the coordinator (S1) is. The coordinator serves the page
// itself; a bundle for another origin names the coordinator in index.html.

const named = () => document.querySelector('meta[name="faircount-server"]')?.content;

/** The coordinator's address. */
export const serverAddress = () => named() ?? new URL(".", document.baseURI).href;

/** The host from which this page comes, if that is another one than the coordinator's. */
export function foreignHost() {
  const isForeign = named() && new URL(named()).host !== location.host;
  return isForeign ? location.host : null;
}
