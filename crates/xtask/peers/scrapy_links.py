"""Scrapy with a spider that follows every link of a host and keeps nothing: scrapy_links.py URL"""

import sys
from urllib.parse import urlsplit

from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule


class Links(CrawlSpider):
    name = "links"
    start_urls = [sys.argv[1]]
    allowed_domains = [urlsplit(sys.argv[1]).hostname]
    rules = [Rule(LinkExtractor(), follow=True)]


process = CrawlerProcess(
    settings={
        "LOG_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "ROBOTSTXT_OBEY": False,
        "CONCURRENT_REQUESTS": 64,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 64,
        "DOWNLOAD_DELAY": 0,
        "COOKIES_ENABLED": False,
        "RETRY_ENABLED": False,
        "DEPTH_LIMIT": 0,
    }
)
process.crawl(Links)
process.start()
