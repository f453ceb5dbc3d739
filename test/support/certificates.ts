import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder, run } from './postgres-process';

const NEW_KEY = ['-newkey', 'rsa:2048', '-nodes', '-days', '2'];

/**
 * An authority of the test's own, a certificate of this machine that it has signed, and a certificate of a client
 * called `locker`.
 */
export class Certificates {
  readonly #folder = makeFolder('tls');

  constructor() {
    this.#openssl('req', '-x509', ...NEW_KEY, '-subj', '/CN=authority', '-keyout', 'ca-key.pem', '-out', 'ca.pem');
    this.#issue('server', 'server', 'subjectAltName=IP:127.0.0.1,DNS:localhost');
    this.#issue('elsewhere', 'elsewhere', 'subjectAltName=DNS:elsewhere');
    this.#issue('client', 'locker', 'subjectAltName=DNS:locker');
  }

  get authority(): string {
    return this.path('ca.pem');
  }

  /**
   * The path of a file: `server.pem`, of a host with another name `elsewhere.pem`, and `client.pem`; their keys end
   * with `-key.pem`.
   */
  path(name: string): string {
    return join(this.#folder, name);
  }

  /** The words of a Redis server that speaks TLS at a port, and asks its clients for certificates. */
  ofRedis(port: number, name = 'server'): string[] {
    const own = ['--tls-cert-file', this.path(`${name}.pem`), '--tls-key-file', this.path(`${name}-key.pem`)];
    return ['--tls-port', String(port), ...own, '--tls-ca-cert-file', this.authority, '--tls-auth-clients', 'yes'];
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true });
  }

  #issue(name: string, subject: string, extension: string): void {
    const request = ['-subj', `/CN=${subject}`, '-addext', extension, '-keyout', `${name}-key.pem`, '-out', `${name}.csr`];
    this.#openssl('req', ...NEW_KEY, ...request);
    const signing = ['-CA', 'ca.pem', '-CAkey', 'ca-key.pem', '-CAcreateserial', '-copy_extensions', 'copy', '-days', '2'];
    this.#openssl('x509', '-req', '-in', `${name}.csr`, ...signing, '-out', `${name}.pem`);
  }

  #openssl(...words: readonly string[]): void {
    run('openssl', words, this.#folder);
  }
}
