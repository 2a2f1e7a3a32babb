/**
 * State of the platform, as its readiness endpoint returns it. `ready`: POST /transaction would be
 * accepted. `signing`: accepted transfers would also be signed. `attended`: a worker and a scanner
 * are running, so transfers would be processed and confirmed. `checks`: the reasons, by component.
 */
export interface Readiness {
  ready: boolean
  signing: boolean
  attended: boolean
  checks: Record<string, string>
}
