import { Refusal } from '../errors.ts'
export class Backups {
  async backup(_body: unknown): Promise<unknown> { throw new Refusal('NOT_FOUND', 'Not yet') }
  async restore(_body: unknown): Promise<unknown> { throw new Refusal('NOT_FOUND', 'Not yet') }
}
