import { Refusal } from '../errors.ts'
export class Refresher {
  async command(_body: unknown): Promise<unknown> { throw new Refusal('NOT_FOUND', 'Not yet') }
}
