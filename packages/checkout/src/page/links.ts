/** An address that a link may lead to; null for everything but the web. */
export function webLink(url: string | null): string | null {
  if (url === null) return null
  try {
    return /^https?:$/.test(new URL(url).protocol) ? url : null
  } catch {
    return null
  }
}

/** A link that a wallet opens: any scheme that the browser does not run or show itself. */
export function walletLink(uri: string | null): string | null {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(uri ?? '')?.[1]?.toLowerCase()
  return scheme === undefined ||
    /^(?:javascript|data|vbscript|blob|file|about|view-source)$/.test(scheme)
    ? null
    : uri
}
